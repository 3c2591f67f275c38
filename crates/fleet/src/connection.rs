//! The connection to the Temporal server.

use std::{path::Path, time::Duration};

use temporalio_client::{
    Client, ClientOptions, ClientTlsOptions, Connection, ConnectionOptions, NamespacedClient as _,
    TlsOptions, tonic::IntoRequest,
};
use temporalio_common::protos::temporal::api::workflowservice::v1::DescribeNamespaceRequest;

use crate::{TemporalOptions, TemporalTls};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects under the name of a process. Fails where the server cannot be reached, refuses us, or is
/// too old.
pub(crate) async fn connect(options: &TemporalOptions, identity: &str) -> Result<Client, String> {
    let place = options.describe();
    let failed = |error: &dyn std::fmt::Display| format!("Temporal at {place}: {error}");
    let tls = match &options.tls {
        Some(tls) => Some(read_tls(tls).await?),
        None => None,
    };
    let connection = ConnectionOptions::new(options.target.clone())
        .identity(identity.to_owned())
        .connect_timeout(CONNECT_TIMEOUT)
        .maybe_api_key(options.api_key.clone())
        .maybe_tls_options(tls)
        .build();
    let connection = Connection::connect(connection)
        .await
        .map_err(|error| failed(&error))?;
    let namespace = ClientOptions::new(options.namespace.clone()).build();
    let client = Client::new(connection, namespace).map_err(|error| failed(&error))?;
    if has_standalone_activities(&client)
        .await
        .map_err(|error| failed(&error))?
    {
        return Ok(client);
    }
    Err(failed(
        &"this server does not run activities without a workflow; version 1.32 or later does",
    ))
}

async fn has_standalone_activities(client: &Client) -> Result<bool, String> {
    let request = DescribeNamespaceRequest {
        namespace: client.namespace(),
        ..DescribeNamespaceRequest::default()
    };
    let mut service = client.connection().workflow_service();
    let answer = service.describe_namespace(request.into_request()).await;
    let namespace = answer.map_err(|status| status.message().to_owned())?;
    let info = namespace.into_inner().namespace_info;
    let capabilities = info.and_then(|info| info.capabilities);
    Ok(capabilities.is_some_and(|has| has.standalone_activities))
}

async fn read_tls(tls: &TemporalTls) -> Result<TlsOptions, String> {
    let server_ca = match &tls.server_ca {
        Some(path) => Some(read(path).await?),
        None => None,
    };
    let client = match &tls.client {
        Some((certificate, key)) => Some(
            ClientTlsOptions::builder()
                .client_cert(read(certificate).await?)
                .client_private_key(read(key).await?)
                .build(),
        ),
        None => None,
    };
    Ok(TlsOptions::builder()
        .maybe_server_root_ca_cert(server_ca)
        .maybe_domain(tls.server_name.clone())
        .maybe_client_tls_options(client)
        .build())
}

async fn read(path: &Path) -> Result<Vec<u8>, String> {
    let read = tokio::fs::read(path).await;
    read.map_err(|error| format!("{}: {error}", path.display()))
}

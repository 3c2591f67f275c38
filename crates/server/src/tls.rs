//! A certificate and its key, from their files.

use std::{path::Path, sync::Arc};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsFiles;

/// Reads the files; the error names the one that is wrong.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, String> {
    let certificates: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(&files.certificate)
            .map_err(|error| wrong(&files.certificate, &error))?
            .collect();
    let certificates = certificates.map_err(|error| wrong(&files.certificate, &error))?;
    if certificates.is_empty() {
        return Err(wrong(
            &files.certificate,
            &"it has no certificate in PEM form",
        ));
    }
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| wrong(&files.certificate, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

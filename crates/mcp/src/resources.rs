//! Resources of a server: two tools, for the model and for `@server:uri` in a prompt.
//!
//! The tools are there for servers that have resources. Their names are like those of the server's
//! own tools, so that rules about the server hold for them too, and like those they are asked about:
//! a model chooses the address that is read, and could put anything into it.

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_tools::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, bound, input};
use rmcp::model::{
    ClientRequest, ReadResourceRequest, ReadResourceRequestParams, ResourceContents, ServerResult,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::{
    naming::{server_word, tool_name},
    offer, outcome,
    server::McpServer,
    tool::shortened,
};

/// Longer addresses are refused.
const MAX_URI: usize = 4 << 10;
/// Characters of a description in a list.
const DESCRIPTION: usize = 200;

impl McpServer {
    fn has_resources(&self) -> bool {
        self.offer(|offer| offer.has_resources)
    }

    async fn read(
        &self,
        uri: &str,
        cancel: &CancellationToken,
    ) -> Result<Vec<ResourceContents>, String> {
        if uri.is_empty() || uri.len() > MAX_URI {
            return Err("the uri is empty or too long".to_owned());
        }
        let params = ReadResourceRequestParams::new(uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        match self.request(request, cancel, None).await? {
            ServerResult::ReadResourceResult(result) => Ok(result.contents),
            _ => Err(self.answered_otherwise()),
        }
    }

    /// Resources and templates, a line each.
    async fn list(&self) -> Result<String, String> {
        let peer = &self.line()?.peer;
        let resources = offer::all(|params| async move {
            let page = peer.list_resources(params).await?;
            Ok((page.resources, page.next_cursor))
        });
        let templates = offer::all(|params| async move {
            let page = peer.list_resource_templates(params).await?;
            Ok((page.resource_templates, page.next_cursor))
        });
        let limit = self.setup.call_timeout;
        let both = async { tokio::join!(resources, templates) };
        let asked = tokio::time::timeout(limit, both).await;
        let (resources, templates) = asked.map_err(|_| self.named("gave no list in time"))?;
        let resources =
            resources.map_err(|error| self.named(&format!("lists no resources: {error}")))?;
        let mut lines: Vec<String> = Vec::new();
        for one in resources {
            lines.push(line(&one.uri, &one.name, one.description.as_deref()));
        }
        // Many servers have none and refuse the question.
        for one in templates.unwrap_or_default() {
            let text = line(&one.uri_template, &one.name, one.description.as_deref());
            lines.push(format!("{text} (template)"));
        }
        match lines.is_empty() {
            true => Ok("It has no resources now.".to_owned()),
            false => Ok(lines.join("\n")),
        }
    }
}

fn line(uri: &str, name: &str, description: Option<&str>) -> String {
    let text = match description {
        Some(description) => format!("{uri} ({name}): {description}"),
        None => format!("{uri} ({name})"),
    };
    shortened(&text.replace(['\n', '\r'], " "), MAX_URI + DESCRIPTION)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    Read,
}

#[derive(Deserialize, JsonSchema)]
struct ReadInput {
    /// As the list gives it
    uri: String,
}

#[derive(Deserialize, JsonSchema)]
struct ListInput {}

struct ResourceTool {
    name: String,
    description: String,
    kind: Kind,
    server: Arc<McpServer>,
}

/// Both for a server that has resources, none for others.
pub(super) fn resource_tools(
    server: &Arc<McpServer>,
    used: &mut HashSet<String>,
) -> Vec<Arc<dyn Tool>> {
    if !server.has_resources() {
        return Vec::new();
    }
    let name = &server.config().name;
    let word = server_word(name);
    let mut tool = |kind, called: &str, description: String| -> Arc<dyn Tool> {
        Arc::new(ResourceTool {
            name: tool_name(name, called, used),
            description,
            kind,
            server: server.clone(),
        })
    };
    vec![
        tool(
            Kind::List,
            "list_resources",
            format!("Lists the resources of the MCP server {word}"),
        ),
        tool(
            Kind::Read,
            "read_resource",
            format!("Reads a resource of the MCP server {word}"),
        ),
    ]
}

#[async_trait]
impl Tool for ResourceTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn input_schema(&self) -> Arc<RawValue> {
        static LIST: LazyLock<Arc<RawValue>> = LazyLock::new(input::schema::<ListInput>);
        static READ: LazyLock<Arc<RawValue>> = LazyLock::new(input::schema::<ReadInput>);
        match self.kind {
            Kind::List => LIST.clone(),
            Kind::Read => READ.clone(),
        }
    }

    fn effect(&self) -> Effect {
        Effect::SideBySide
    }

    fn inspect(&self, input: &RawValue, _: &Context) -> Result<Intent, ToolError> {
        let summary = match self.kind {
            Kind::List => String::new(),
            Kind::Read => input::parse::<ReadInput>(input)?.uri,
        };
        Ok(Intent {
            summary,
            access: vec![Access::Nothing],
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let done = match self.kind {
            Kind::List => tokio::select! {
                listed = self.server.list() => {
                    listed.map(|text| ToolOutput::text(bound(text, context, &self.name)))
                }
                () = call.cancel.cancelled() => Err("interrupted".to_owned()),
            },
            Kind::Read => match input::parse::<ReadInput>(&call.input) {
                Ok(input) => {
                    let read = self.server.read(&input.uri, &call.cancel).await;
                    let token = self.server.token();
                    let token = token.as_deref();
                    read.map(|contents| outcome::resource(contents, context, &self.name, token))
                }
                Err(error) => return error.into(),
            },
        };
        done.unwrap_or_else(ToolOutput::error)
    }
}

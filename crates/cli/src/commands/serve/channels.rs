//! Serves the chat channels that are set up.

use std::{path::PathBuf, sync::Arc};

use codespar_channels::{
    ChannelCore, ChannelSetup, ConfiguredChannel, PageProject, StoredChannel, Unlinked, WEB,
};
use codespar_runtime::{Project, Runtime, crash_point};
use codespar_server::{ProjectKey, Webhooks};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::printer;

/// Channels that are served.
pub(super) struct ServedChannels {
    pub(super) hooks: Webhooks,
    pub(super) core: Arc<ChannelCore>,
    /// Ends when all have stopped.
    pub(super) running: TaskTracker,
}

/// Handles messages until `cancel`, in the background. A conversation that has no repository
/// linked is about none: the directory of the server is not everybody's.
pub(super) fn serve(
    channels: Vec<ConfiguredChannel>,
    runtime: &Arc<Runtime>,
    home: Arc<Project>,
    roots: &[PathBuf],
    cancel: &CancellationToken,
) -> ServedChannels {
    let running = TaskTracker::new();
    let mut hooks = Webhooks::default();
    let core = ChannelCore::new(ChannelSetup {
        runtime: runtime.clone(),
        crash_point: crash_point(&home.dir, "CODESPAR_TEST_DIE_AT"),
        home,
        unlinked: Unlinked::Nothing,
        pages: pages(roots),
        owner: None,
    });
    for channel in channels.into_iter().chain([page_channel()]) {
        let name = channel.adapter.name().to_owned();
        if let Some(make) = channel.webhook {
            hooks.by_channel.insert(name.clone(), make(core.clone()));
        }
        if let Some(source) = channel.source {
            running.spawn(source(core.clone(), cancel.clone()));
        }
        let (core, cancel) = (core.clone(), cancel.clone());
        running.spawn(async move {
            if let Err(error) = core.serve(channel.adapter, cancel).await {
                printer::err(format_args!("codespar: {name} is not served: {error}"));
            }
        });
    }
    running.close();
    ServedChannels {
        hooks,
        core,
        running,
    }
}

/// What is said on the page and over the API: it is read from the record.
fn page_channel() -> ConfiguredChannel {
    ConfiguredChannel {
        adapter: Arc::new(StoredChannel {
            name: WEB.to_owned(),
        }),
        webhook: None,
        source: None,
    }
}

/// The projects of the server by the names of their directories; two of one name are told apart by
/// their keys.
fn pages(roots: &[PathBuf]) -> Vec<PageProject> {
    let name = |root: &PathBuf| {
        let name = root.file_name().and_then(|name| name.to_str());
        name.unwrap_or("repository").to_owned()
    };
    let page = |root: &PathBuf| {
        let key = ProjectKey::of(root).as_str().to_owned();
        let same = roots.iter().filter(|other| name(other) == name(root));
        let is_alone = same.count() == 1;
        PageProject {
            name: match is_alone {
                true => name(root),
                false => format!("{}-{key}", name(root)),
            },
            conversation: key,
            root: root.clone(),
        }
    };
    roots.iter().map(page).collect()
}

//! Pictures of a message: fetched once its speaker is known to have a right to what it asks for.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use codespar_dev::check_image;
use codespar_store::{ChannelMessage, StoreError};
use ring::digest::{SHA256, digest};

use super::{ChannelCore, brief::Brief, decide::Turn};
use crate::{ChatCommand, ChatRequest, ImageSource, InboundImage};

/// The most that is read of one. Larger ones are refused by [`check_image`], too, but are not to be
/// fetched for that.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// The most that a message can have.
const MOST_PICTURES: usize = 10;

/// A picture, or why it cannot be used, in words for the person who sent it.
pub(crate) struct Picture {
    pub(crate) name: String,
    pub(crate) found: Result<PathBuf, String>,
}

impl Picture {
    /// What is said of one that is left out; the text of the message runs without it. The name is
    /// the sender's, and made harmless with the rest of the message that says so.
    pub(crate) fn problem(&self) -> Option<String> {
        let reason = self.found.as_ref().err()?;
        Some(format!("{} is left out: {reason}", self.name))
    }
}

impl ChannelCore {
    /// The pictures that go with a command. Of a mention whose event had none, the platform is asked:
    /// the event that has them may come later, or not at all.
    pub(crate) async fn images_for(
        &self,
        turn: &Turn,
        request: &ChatRequest,
    ) -> Result<Vec<InboundImage>, StoreError> {
        let (message, kept) = (&turn.message, &turn.kept);
        let can_use = matches!(
            request.command,
            ChatCommand::Dev { .. } | ChatCommand::Ask { .. }
        );
        let may_lack = kept.images.is_empty() && kept.origin.is_none() && message.mentioned;
        let adapter = self.adapters.lock().get(&message.at.channel).cloned();
        let (true, true, Some(adapter)) = (can_use, may_lack, adapter) else {
            return Ok(kept.images.clone());
        };
        let place = self.posting_place(&message.at).await?;
        let found = adapter.images_of(&place, &message.identity).await;
        Ok(found.unwrap_or_else(|error| {
            tracing::warn!("pictures of a message are not known: {error}");
            Vec::new()
        }))
    }

    /// Fetches what is not there yet. A file stays until its message is settled, so that a restart
    /// finds it.
    pub(crate) async fn pictures(
        &self,
        message: &ChannelMessage,
        images: &[InboundImage],
    ) -> Vec<Picture> {
        let mut pictures = Vec::new();
        for (index, image) in images.iter().enumerate() {
            let found = match index < MOST_PICTURES {
                true => self.picture(message, index, image).await,
                false => Err(format!("a message can have {MOST_PICTURES}")),
            };
            let checked = found.and_then(|path| match check_image(&path) {
                Ok(_) => Ok(path),
                Err(error) => {
                    let shown = path.display().to_string();
                    Err(error.to_string().replace(&shown, &image.name))
                }
            });
            pictures.push(Picture {
                name: image.name.clone(),
                found: checked,
            });
        }
        pictures
    }

    async fn picture(
        &self,
        message: &ChannelMessage,
        index: usize,
        image: &InboundImage,
    ) -> Result<PathBuf, String> {
        let reference = match &image.source {
            ImageSource::File(path) => return Ok(path.clone()),
            ImageSource::Platform(reference) => reference,
            ImageSource::Unusable(reason) => return Err(reason.clone()),
        };
        let directory = self.picture_directory(&message.at.channel, &message.identity);
        let path = directory.join(index.to_string());
        if path.exists() {
            return Ok(path);
        }
        let adapter = self.adapters.lock().get(&message.at.channel).cloned();
        let adapter = adapter.ok_or("the channel is not served here")?;
        let bytes = adapter.fetch_image(reference, MOST_BYTES).await?;
        keep_picture(&path, bytes).await?;
        self.reach("fetched");
        Ok(path)
    }

    /// Nothing needs them any more: neither those of the message, nor those of messages that were
    /// delivered together with it.
    pub(crate) async fn drop_pictures(&self, message: &ChannelMessage) {
        let mut directories = used_by(message);
        directories.insert(self.picture_directory(&message.at.channel, &message.identity));
        let kept = self.pictures_of(&message.at.channel);
        for directory in directories {
            // A picture of the terminal channel is the user's own file.
            if directory.parent() == Some(&kept) {
                remove(&directory).await;
            }
        }
    }

    /// Removes what a process left that died between the end of a message and its pictures'.
    pub(crate) async fn sweep_pictures(&self, channel: &str) -> Result<(), StoreError> {
        let mut in_use = HashSet::new();
        for message in self.store().open_messages(channel).await? {
            in_use.extend(used_by(&message));
            in_use.insert(self.picture_directory(&message.at.channel, &message.identity));
        }
        let Ok(mut entries) = tokio::fs::read_dir(self.pictures_of(channel)).await else {
            return Ok(());
        };
        while let Ok(Some(entry)) = entries.next_entry().await {
            if !in_use.contains(&entry.path()) {
                remove(&entry.path()).await;
            }
        }
        Ok(())
    }

    fn pictures_of(&self, channel: &str) -> PathBuf {
        let state = self.setup.home.dir.state();
        state.join("channel-pictures").join(channel)
    }

    /// Identities are the platform's, and not names of files.
    pub(crate) fn picture_directory(&self, channel: &str, identity: &str) -> PathBuf {
        let name: String = digest(&SHA256, identity.as_bytes()).as_ref()[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.pictures_of(channel).join(name)
    }
}

/// Puts a picture into its directory, whole or not at all: a crash leaves no half of one.
pub(crate) async fn keep_picture(path: &Path, bytes: Vec<u8>) -> Result<(), String> {
    let path = path.to_owned();
    let written = tokio::task::spawn_blocking(move || {
        let directory = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        std::io::Write::write_all(&mut file, &bytes)?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok::<_, std::io::Error>(())
    });
    match written.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("it cannot be kept: {error}")),
        Err(_) => Err("it cannot be kept".to_owned()),
    }
}

/// The directories of the pictures that the work of a message was given.
fn used_by(message: &ChannelMessage) -> HashSet<PathBuf> {
    let work = message.work.as_deref();
    let images = match work.and_then(|work| serde_json::from_str(work).ok()) {
        Some(Brief::Dev(brief)) => brief.images,
        _ => Vec::new(),
    };
    let directories = images.iter().filter_map(|image| image.parent());
    directories.map(Path::to_owned).collect()
}

async fn remove(directory: &Path) {
    let removed = tokio::fs::remove_dir_all(directory).await;
    if let Err(error) = removed
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!("pictures of a message stay: {error}");
    }
}

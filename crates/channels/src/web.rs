//! The channel of the web page and of the HTTP API: the server vouches for who speaks.
//!
//! A speaker of this channel is a token of the server, by its id. What the speaker may do is the
//! role that the token has when a message is decided about, whatever the settings say of channels;
//! a token that was revoked since has none. Nobody else can speak here: [`ChannelCore::receive`]
//! takes no message of this channel.

use std::path::PathBuf;

use codespar_dev::check_image_bytes;
use codespar_store::{
    AccessToken, ChannelMessage, MessageState, OutboxRow, Receipt, StoreError, ThreadRef,
};
use ring::digest::{SHA256, digest};

use crate::{
    ChannelCore, ImageSource, Inbound, InboundImage, Outbound, Privacy, Speaker, SpeakerKind,
    engine::keep_picture, mentioned, message::KeptMessage,
};

/// The name of the channel.
pub const WEB: &str = "web";

/// A project of the server: what a conversation of the page is about, without a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageProject {
    /// The name of the conversation.
    pub conversation: String,
    /// As people know it. Without a slash, so that it is no repository of a forge.
    pub name: String,
    pub root: PathBuf,
}

/// A line that somebody with a token says.
#[derive(Debug, Clone)]
pub struct VouchedLine {
    /// Who was let in by the server, at this moment.
    pub token: AccessToken,
    pub conversation: String,
    pub thread: String,
    /// Chosen by the client: the same line under the same key is said once.
    pub key: String,
    pub text: String,
    /// Our message that this one answers.
    pub reply_to: Option<String>,
    pub images: Vec<VouchedImage>,
}

/// A picture that goes with a line, checked by its content.
#[derive(Clone, PartialEq, Eq)]
pub struct VouchedImage {
    name: String,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for VouchedImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VouchedImage({}, {} bytes)", self.name, self.bytes.len())
    }
}

impl VouchedImage {
    /// The error says what is wrong with it, in words for the person who sent it.
    pub fn new(name: String, bytes: Vec<u8>) -> Result<Self, String> {
        match check_image_bytes(&bytes) {
            Ok(()) => Ok(Self { name, bytes }),
            Err(reason) => Err(format!("{name} {reason}")),
        }
    }
}

/// Why a line was not taken.
#[derive(Debug, thiserror::Error)]
pub enum VouchedError {
    #[error("the key was used for another line")]
    KeyReused,
    #[error("a picture cannot be kept: {0}")]
    Picture(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A message of a thread, as a page shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadMessage {
    /// Of a person.
    Said {
        message: Box<ChannelMessage>,
        speaker: Speaker,
        text: String,
        /// The names of its pictures.
        images: Vec<String>,
    },
    /// Of ours, in its last revision.
    Ours {
        row: Box<OutboxRow>,
        outbound: Outbound,
    },
}

impl ThreadMessage {
    fn at(&self) -> jiff::Timestamp {
        match self {
            Self::Said { message, .. } => message.received_at,
            Self::Ours { row, .. } => row.created_at,
        }
    }
}

impl ChannelCore {
    /// Puts a line on record for whom the server let in. The identity has the token in it, so that
    /// nobody can repeat or block the lines of others by their keys.
    /// Pictures are in place before the line is on record.
    pub async fn receive_vouched(&self, line: VouchedLine) -> Result<ChannelMessage, VouchedError> {
        let identity = format!("{WEB}:{}:{}", line.token.id, line.key);
        let images = self.kept_images(&identity, line.images).await?;
        let text = match mentioned(&line.text) {
            Some(_) => line.text,
            // As in a direct message, but a mention in code or a quotation is just text.
            None => format!("@codespar {}", line.text),
        };
        let inbound = Inbound {
            identity: identity.clone(),
            at: ThreadRef {
                channel: WEB.to_owned(),
                conversation: line.conversation,
                thread: line.thread,
            },
            speaker: Speaker {
                id: line.token.id.to_string(),
                name: line.token.name,
                kind: SpeakerKind::Person,
            },
            mentioned: true,
            privacy: Privacy::Direct,
            text,
            images: images.clone(),
            reply_to: line.reply_to,
        };
        let at = inbound.at.clone();
        let text = inbound.text.clone();
        let receipt = self.put_on_record(inbound, None).await?;
        let message = self.store().message(&identity).await?;
        let is_same = message.at == at
            && kept(&message).is_some_and(|kept| kept.text == text && kept.images == images);
        if receipt == Receipt::Known {
            self.drop_repeated(&message, &images).await;
        }
        match (receipt, is_same) {
            (Receipt::Known, false) => Err(VouchedError::KeyReused),
            _ => Ok(message),
        }
    }

    /// Files by their content: the same line again has the same ones.
    async fn kept_images(
        &self,
        identity: &str,
        images: Vec<VouchedImage>,
    ) -> Result<Vec<InboundImage>, VouchedError> {
        let directory = self.picture_directory(WEB, identity);
        let mut kept = Vec::new();
        for image in images {
            let hash = digest(&SHA256, &image.bytes);
            let name: String = hash.as_ref()[..16]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let path = directory.join(name);
            let written = keep_picture(&path, image.bytes).await;
            written.map_err(VouchedError::Picture)?;
            kept.push(InboundImage {
                name: image.name,
                source: ImageSource::File(path),
            });
        }
        Ok(kept)
    }

    /// A line that was said before has its pictures, or needs none any more.
    async fn drop_repeated(&self, message: &ChannelMessage, images: &[InboundImage]) {
        let in_use = match message.state {
            MessageState::Handled | MessageState::Ignored => Vec::new(),
            _ => kept(message).map_or_else(Vec::new, |kept| kept.images),
        };
        for image in images.iter().filter(|image| !in_use.contains(image)) {
            if let ImageSource::File(path) = &image.source {
                let _ = tokio::fs::remove_file(path).await;
            }
        }
    }

    /// The last messages of a thread of the page, in the order in which they came.
    pub async fn page_thread(
        &self,
        conversation: &str,
        thread: &str,
        limit: u32,
    ) -> Result<Vec<ThreadMessage>, StoreError> {
        let at = ThreadRef {
            channel: WEB.to_owned(),
            conversation: conversation.to_owned(),
            thread: thread.to_owned(),
        };
        let said = self.store().messages_of_thread(&at, limit).await?;
        let ours = self.store().sent_to_thread(&at, limit).await?;
        let said = said.into_iter().filter_map(|message| {
            let kept = kept(&message)?;
            let text = mentioned(&kept.text).unwrap_or(&kept.text).to_owned();
            Some(ThreadMessage::Said {
                message: Box::new(message),
                speaker: kept.speaker,
                text,
                images: kept.images.into_iter().map(|image| image.name).collect(),
            })
        });
        let ours = ours.into_iter().filter_map(|row| {
            let outbound = serde_json::from_str(&row.body).ok()?;
            Some(ThreadMessage::Ours {
                row: Box::new(row),
                outbound,
            })
        });
        let mut all: Vec<ThreadMessage> = said.chain(ours).collect();
        all.sort_by_key(ThreadMessage::at);
        let surplus = all.len().saturating_sub(limit as usize);
        Ok(all.split_off(surplus))
    }
}

fn kept(message: &ChannelMessage) -> Option<KeptMessage> {
    serde_json::from_str(&message.body).ok()
}

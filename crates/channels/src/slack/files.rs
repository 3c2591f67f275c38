//! Files of a Slack message: which are pictures, and how they are fetched.

use reqwest::{Response, StatusCode, header::CONTENT_TYPE};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use url::Url;

use crate::{ImageSource, InboundImage, client::read_at_most};

/// Where Slack keeps files, besides the host of its API.
const FILES_HOST: &str = "files.slack.com";
/// Before the id of a file whose address has to be asked for.
const BY_ID: &str = "id:";

/// A file as an event or `files.info` describes it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct SlackFile {
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    mimetype: Option<String>,
    #[serde(default)]
    mode: Option<String>,
    /// `check_file_info` in channels that are shared with another workspace: only the id is there.
    #[serde(default)]
    file_access: Option<String>,
    #[serde(default)]
    url_private_download: Option<String>,
}

impl SlackFile {
    /// What the core keeps of it. Nothing is fetched yet.
    pub(super) fn image(self) -> InboundImage {
        let name = self.name.clone().unwrap_or_else(|| self.id.clone());
        let source = match self.file_access.as_deref() {
            Some("check_file_info") => ImageSource::Platform(format!("{BY_ID}{}", self.id)),
            _ => match self.address() {
                Ok(url) => ImageSource::Platform(url),
                Err(reason) => ImageSource::Unusable(reason),
            },
        };
        InboundImage { name, source }
    }

    /// Where a picture is; for anything else, why it is left out.
    pub(super) fn address(self) -> Result<String, String> {
        if matches!(self.mode.as_deref(), Some("tombstone" | "hidden_by_limit")) {
            return Err("Slack does not have it any more".to_owned());
        }
        let kind = self.mimetype.unwrap_or_default();
        if !kind.starts_with("image/") {
            let kind = match kind.as_str() {
                "" => "of an unknown type",
                kind => kind,
            };
            return Err(format!("it is no picture ({kind})"));
        }
        let missing = || "Slack gave no address for it".to_owned();
        self.url_private_download.ok_or_else(missing)
    }
}

/// The title of a file of ours, by which it is found again after a crash: files have no metadata.
pub(super) fn title(key: &str) -> String {
    let tag = digest(&SHA256, key.as_bytes());
    let tag: String = tag.as_ref()[..6]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("log {tag}")
}

/// How a picture is to be fetched.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reference<'a> {
    Address(&'a str),
    Id(&'a str),
}

impl<'a> Reference<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        match text.strip_prefix(BY_ID) {
            Some(id) => Self::Id(id),
            None => Self::Address(text),
        }
    }
}

/// The address of a file, if it is Slack's own: the token is sent there.
pub(super) fn trusted(address: &str, api: &Url) -> Result<Url, String> {
    let foreign = || "it is not kept by Slack".to_owned();
    let url: Url = address.parse().map_err(|_| foreign())?;
    let is_slack = url.scheme() == "https"
        && url.port().is_none()
        && url.host_str() == Some(FILES_HOST)
        && url.username().is_empty()
        && url.password().is_none();
    match is_slack || url.origin() == api.origin() {
        true => Ok(url),
        false => Err(foreign()),
    }
}

/// Reads at most `most` bytes. Without the scope `files:read` Slack answers with the page of its
/// sign-in, or the way there, and not with an error.
pub(super) async fn read(response: Response, most: usize) -> Result<Vec<u8>, String> {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE);
    let is_page = kind
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.starts_with("text/html"));
    if status.is_redirection() || (status.is_success() && is_page) {
        return Err("Slack asks for a sign-in: the app lacks the scope files:read".to_owned());
    }
    if status != StatusCode::OK {
        return Err(format!("Slack says {status}"));
    }
    read_at_most(response, most).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn source(file: serde_json::Value) -> ImageSource {
        let file: SlackFile = serde_json::from_value(file).unwrap();
        file.image().source
    }

    #[test]
    fn pictures_are_kept_by_their_address_and_others_are_named() {
        let picture = json!({"id": "F1", "name": "a.png", "mimetype": "image/png",
            "url_private_download": "https://files.slack.com/a.png"});
        let address = "https://files.slack.com/a.png".to_owned();
        assert_eq!(source(picture), ImageSource::Platform(address));
        let shared = json!({"id": "F2", "file_access": "check_file_info"});
        assert_eq!(source(shared), ImageSource::Platform("id:F2".to_owned()));
        let text = json!({"id": "F3", "name": "a.pdf", "mimetype": "application/pdf"});
        let reason = "it is no picture (application/pdf)".to_owned();
        assert_eq!(source(text), ImageSource::Unusable(reason));
        let gone = json!({"id": "F4", "mode": "tombstone"});
        assert!(matches!(source(gone), ImageSource::Unusable(_)));
    }

    #[test]
    fn the_token_is_sent_to_hosts_of_slack_only() {
        let api: Url = "https://slack.com/api/".parse().unwrap();
        for address in [
            "https://files.slack.com/files-pri/T1-F1/download/a.png",
            "https://slack.com/files/a.png",
        ] {
            assert!(trusted(address, &api).is_ok(), "{address}");
        }
        for address in [
            "http://files.slack.com/a.png",
            "https://files.slack.com.evil.example/a.png",
            "https://files.slack.com@evil.example/a.png",
            "https://user@files.slack.com/a.png",
            "https://files.slack.com:8443/a.png",
            "https://evil.example/files.slack.com/a.png",
            "https://169.254.169.254/latest/meta-data",
            "http://slack.com/a.png",
            "file:///etc/passwd",
            "a.png",
        ] {
            assert!(trusted(address, &api).is_err(), "{address}");
        }
    }
}

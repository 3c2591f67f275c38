//! Pictures in comments. Their addresses say nothing about who may see them; GitHub gives signed
//! ones with the comment as HTML, which are fetched without a token, and from its own hosts alone.
//!
//! A comment is written by anybody, and an address in it is one that our server would open. So an
//! address is never taken from the text as it is: the text says which picture, and GitHub's own
//! rendering says where it is.

use reqwest::header::LOCATION;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use url::Url;

use super::api::{Ask, FULL, GitHubApi, reason};
use crate::{ImageSource, InboundImage};

/// Hosts that GitHub keeps pictures of comments at.
const HOSTS: [&str; 2] = [
    "private-user-images.githubusercontent.com",
    "user-images.githubusercontent.com",
];
/// On github.com only this path is a picture.
const ATTACHMENTS: &str = "/user-attachments/";
const MOST_REDIRECTS: usize = 3;

/// Which picture of which comment, as it was when the comment was read.
#[derive(Serialize, Deserialize)]
struct Reference {
    repository: String,
    /// Below the repository: `issues/comments/7`.
    path: String,
    index: usize,
    /// Of the text of the comment: a later edit does not count.
    digest: String,
}

/// The pictures that a text shows, in order.
pub(super) fn images(text: &str, repository: &str, path: &str) -> Vec<InboundImage> {
    let digest = hex_digest(text);
    let image = |(index, address): (usize, String)| {
        let reference = Reference {
            repository: repository.to_owned(),
            path: path.to_owned(),
            index,
            digest: digest.clone(),
        };
        let name = address.rsplit('/').find(|part| !part.is_empty());
        InboundImage {
            name: name.unwrap_or("picture").to_owned(),
            source: ImageSource::Platform(serde_json::to_string(&reference).unwrap_or_default()),
        }
    };
    sources(text).into_iter().enumerate().map(image).collect()
}

fn hex_digest(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    let bytes = digest.as_ref().iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Addresses of `![text](address)` and `<img src="address">`, in order.
fn sources(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let (mark, tag) = (rest.find("!["), rest.find("<img"));
        let at = match (mark, tag) {
            (Some(mark), Some(tag)) => mark.min(tag),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => return found,
        };
        let here = &rest[at..];
        found.extend(match here.starts_with('<') {
            true => tag_source(here),
            false => mark_source(here),
        });
        rest = &here[2..];
    }
}

fn mark_source(text: &str) -> Option<String> {
    let (_, after) = text.split_once(']')?;
    let (inside, _) = after.strip_prefix('(')?.split_once(')')?;
    inside.split_whitespace().next().map(str::to_owned)
}

fn tag_source(text: &str) -> Option<String> {
    let (tag, _) = text.split_once('>')?;
    let (_, after) = tag.split_once("src=")?;
    let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (address, _) = after[1..].split_once(quote)?;
    Some(address.replace("&amp;", "&"))
}

#[derive(Deserialize)]
struct Rendered {
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    body_html: Option<String>,
}

impl GitHubApi {
    /// At most `most` bytes of a picture. `server` is where people look at repositories.
    pub(super) async fn picture(
        &self,
        reference: &str,
        most: usize,
        server: &Url,
    ) -> Result<Vec<u8>, String> {
        let reference: Reference =
            serde_json::from_str(reference).map_err(|_| "it is not known any more")?;
        let parts: Vec<&str> = reference.path.split('/').collect();
        let ask = Ask {
            accept: FULL,
            ..Ask::get(&reference.repository, &parts)
        };
        let comment: Rendered = self.read(&ask).await.map_err(reason)?;
        let (text, html) = (
            comment.body.unwrap_or_default(),
            comment.body_html.unwrap_or_default(),
        );
        if hex_digest(&text) != reference.digest {
            return Err("the comment was edited since".to_owned());
        }
        let found = sources(&html);
        if found.len() != sources(&text).len() {
            return Err("the pictures of the comment cannot be told apart".to_owned());
        }
        let address = found.get(reference.index).ok_or("it is not there")?;
        let url: Url = address.parse().map_err(|_| "its address is none")?;
        self.download(url, most, server).await
    }

    /// Without a token: the address is signed.
    async fn download(&self, mut url: Url, most: usize, server: &Url) -> Result<Vec<u8>, String> {
        for _ in 0..MOST_REDIRECTS {
            if !is_allowed(&url, server) {
                let host = url.host_str().unwrap_or_default();
                return Err(format!("pictures are not fetched from {host}"));
            }
            let sent = self.http.get(url.clone()).send().await;
            let mut response = sent.map_err(|error| error.without_url().to_string())?;
            if response.status().is_redirection() {
                let location = response.headers().get(LOCATION);
                let location = location.and_then(|value| value.to_str().ok());
                let next = location.and_then(|to| url.join(to).ok());
                url = next.ok_or("its address leads nowhere")?;
                continue;
            }
            if !response.status().is_success() {
                return Err(format!("GitHub says {}", response.status().as_u16()));
            }
            let mut bytes = Vec::new();
            while let Some(chunk) = response
                .chunk()
                .await
                .map_err(|error| error.without_url().to_string())?
            {
                if bytes.len() + chunk.len() > most {
                    return Err(format!("it has more than {most} bytes"));
                }
                bytes.extend_from_slice(&chunk);
            }
            return Ok(bytes);
        }
        Err("its address leads from one to the next".to_owned())
    }
}

/// GitHub's own hosts, or the server of an enterprise.
fn is_allowed(url: &Url, server: &Url) -> bool {
    let is_public = server.host_str() == Some("github.com");
    match url.host_str() {
        _ if !is_public && url.origin() == server.origin() => true,
        Some("github.com") => url.scheme() == "https" && url.path().starts_with(ATTACHMENTS),
        Some(host) => url.scheme() == "https" && HOSTS.contains(&host),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_of_a_text_are_found_in_order() {
        let text = "a ![one](https://x.example/1.png \"t\") <img width=\"1\" src=\"https://x.example/2?a=1&amp;b=2\"> \
                    ![no] ![three](3)";
        assert_eq!(
            sources(text),
            [
                "https://x.example/1.png",
                "https://x.example/2?a=1&b=2",
                "3"
            ]
        );
        assert_eq!(images(text, "acme/shop", "issues/1")[0].name, "1.png");
    }

    #[test]
    fn only_hosts_of_github_are_asked_for_pictures() {
        let public: Url = "https://github.com".parse().unwrap();
        let own: Url = "https://git.acme.example".parse().unwrap();
        let allowed = |url: &str, server: &Url| is_allowed(&url.parse().unwrap(), server);
        for url in [
            "https://private-user-images.githubusercontent.com/1/2.png?jwt=x",
            "https://user-images.githubusercontent.com/1/2.png",
            "https://github.com/user-attachments/assets/1",
        ] {
            assert!(allowed(url, &public), "{url}");
        }
        for url in [
            "http://user-images.githubusercontent.com/1/2.png",
            "https://github.com/acme/shop/raw/main/a.png",
            "https://evil.example/user-attachments/assets/1",
            "https://user-images.githubusercontent.com.evil.example/1",
            "http://169.254.169.254/latest/meta-data",
            "file:///etc/passwd",
        ] {
            assert!(!allowed(url, &public), "{url}");
        }
        assert!(allowed("https://git.acme.example/assets/1", &own));
        assert!(!allowed("http://git.acme.example/assets/1", &own));
    }
}

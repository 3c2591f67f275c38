//! The `Link` header: where the next page of a list is.

use reqwest::header::{HeaderMap, LINK};
use url::Url;

/// `None` on the last page and for a header that cannot be read. The address is not checked here;
/// whoever follows it compares the host.
pub(super) fn next_page(headers: &HeaderMap) -> Option<Url> {
    let links = headers.get(LINK)?.to_str().ok()?;
    links.split(',').find_map(|link| {
        let (address, about) = link.split_once(';')?;
        let is_next = about.split(';').any(|part| part.trim() == "rel=\"next\"");
        let address = address.trim().strip_prefix('<')?.strip_suffix('>')?;
        is_next.then(|| address.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_among_the_others() {
        let next = |links: &str| {
            let headers = HeaderMap::from_iter([(LINK, links.parse().unwrap())]);
            next_page(&headers).map(|url| url.to_string())
        };
        assert_eq!(
            next(r#"<https://x/?page=1>; rel="prev", <https://x/?page=3>; rel="next""#).as_deref(),
            Some("https://x/?page=3")
        );
        assert_eq!(next(r#"<https://x/?page=1>; rel="first""#), None);
    }
}

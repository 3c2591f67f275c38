//! Pages fetched a short while ago.
//!
//! Kept in memory, for the life of the tool. The key is the address that was asked for, not the one
//! that redirects led to.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use url::Url;

use super::page::Page;

/// From the fetch, whether it is used meanwhile or not.
const LIFE: Duration = Duration::from_secs(15 * 60);
const MOST_PAGES: usize = 50;
/// Of page text in all; the oldest pages go first.
const MOST_BYTES: usize = 50 << 20;

/// The newest is last.
#[derive(Default)]
pub(super) struct Cache {
    pages: Mutex<VecDeque<Entry>>,
}

struct Entry {
    url: Url,
    page: Arc<Page>,
    fetched: Instant,
}

impl Cache {
    pub(super) fn get(&self, url: &Url) -> Option<Arc<Page>> {
        self.get_at(url, Instant::now())
    }

    pub(super) fn put(&self, url: Url, page: Arc<Page>) {
        self.put_at(url, page, Instant::now());
    }

    fn get_at(&self, url: &Url, now: Instant) -> Option<Arc<Page>> {
        let mut pages = self.pages.lock();
        pages.retain(|entry| now.duration_since(entry.fetched) < LIFE);
        let entry = pages.iter().find(|entry| entry.url == *url)?;
        Some(Arc::clone(&entry.page))
    }

    fn put_at(&self, url: Url, page: Arc<Page>, now: Instant) {
        let mut pages = self.pages.lock();
        pages.retain(|entry| entry.url != url);
        pages.push_back(Entry {
            url,
            page,
            fetched: now,
        });
        let mut bytes: usize = pages.iter().map(|entry| entry.page.text.len()).sum();
        while pages.len() > MOST_PAGES || bytes > MOST_BYTES {
            let Some(oldest) = pages.pop_front() else {
                break;
            };
            bytes -= oldest.page.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(number: usize) -> Url {
        Url::parse(&format!("http://example.com/{number}")).unwrap()
    }

    fn page(text: String) -> Arc<Page> {
        Arc::new(Page { text, cut: false })
    }

    #[test]
    fn a_page_is_kept_for_fifteen_minutes() {
        let (cache, start) = (Cache::default(), Instant::now());
        cache.put_at(url(1), page("one".to_owned()), start);
        let late = start + LIFE - Duration::from_secs(1);
        assert_eq!(cache.get_at(&url(1), late), Some(page("one".to_owned())));
        assert_eq!(cache.get_at(&url(1), start + LIFE), None);
    }

    #[test]
    fn the_oldest_pages_make_room() {
        let cache = Cache::default();
        for number in 0..=MOST_PAGES {
            cache.put(url(number), page("x".to_owned()));
        }
        assert_eq!(cache.get(&url(0)), None);
        assert_eq!(cache.get(&url(1)), Some(page("x".to_owned())));
        cache.put(url(99), page("x".repeat(MOST_BYTES)));
        assert_eq!(cache.get(&url(1)), None);
        assert!(cache.get(&url(99)).is_some());
    }
}

//! Lists that come in pages.

use serde::de::DeserializeOwned;

use super::api::{Api, Call};
use crate::ForgeError;

impl Api {
    /// Pages of a list, until there are no more or `is_enough` holds of what has come. `items`
    /// extracts the list from one page. The address of the next page comes from the answer and must
    /// be on the same host, since the token is sent there.
    pub(super) async fn pages_until<P, T>(
        &self,
        call: &Call,
        items: fn(P) -> Vec<T>,
        is_enough: impl Fn(&[T]) -> bool,
    ) -> Result<Vec<T>, ForgeError>
    where
        P: DeserializeOwned,
    {
        let mut call = call.clone();
        let mut all = Vec::new();
        loop {
            let answer = self.ask(&call).await?;
            all.extend(items(answer.read(&call)?));
            match answer.next {
                Some(next) if !is_enough(&all) => call.url = self.same_host(&call, next)?,
                _ => return Ok(all),
            }
        }
    }

    /// Pages of a list, until there are no more or `enough` entries have come.
    pub(super) async fn pages<P, T>(
        &self,
        call: &Call,
        enough: usize,
        items: fn(P) -> Vec<T>,
    ) -> Result<Vec<T>, ForgeError>
    where
        P: DeserializeOwned,
    {
        let pages = self.pages_until(call, items, |all| all.len() >= enough);
        let mut all = pages.await?;
        all.truncate(enough);
        Ok(all)
    }

    /// All pages of a plain list.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        call: &Call,
    ) -> Result<Vec<T>, ForgeError> {
        self.pages(call, usize::MAX, |page: Vec<T>| page).await
    }
}

//! What commands of a session print, as text of that session.
//!
//! Standard output belongs to the protocol. Each conversation runs as a task that knows its view;
//! what is printed elsewhere is for whoever reads standard error.

use std::sync::Arc;

use super::view::AcpView;
use crate::{
    printer::{self, Diverted, To},
    session::SessionView,
};

tokio::task_local! {
    /// The view of the session whose task this is.
    pub(super) static CURRENT: Arc<AcpView>;
}

pub(super) fn to_current_session() -> Arc<Diverted> {
    Arc::new(|text: &str| {
        let said = CURRENT.try_with(|view| view.say(text.trim_end_matches('\n')));
        if said.is_err() {
            let _ = printer::send(To::Stderr, &printer::rendered(To::Stderr, text));
        }
    })
}

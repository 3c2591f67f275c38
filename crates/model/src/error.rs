//! What can go wrong with a model call, in words a person can act on.

/// A model call that did not come to an answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ModelError {
    /// The provider answered with an error and no retry helped.
    #[error("{provider} answered {status}: {message}")]
    Api {
        provider: &'static str,
        /// HTTP status; 200 when the error came inside the stream.
        status: u16,
        /// The provider's word for it (`overloaded_error`, `invalid_request_error`, …).
        kind: String,
        /// The provider's message.
        message: String,
    },
    /// No connection, or it broke.
    #[error("cannot reach {provider} at {url}: {message}")]
    Connection {
        provider: &'static str,
        /// Where (no credentials in it).
        url: String,
        /// What the network said.
        message: String,
        /// Whether the request may have reached the provider.
        may_have_arrived: bool,
    },
    /// The stream ended before the answer did, or went silent.
    #[error("the answer from {provider} broke off: {message}")]
    BrokenStream {
        provider: &'static str,
        message: String,
    },
    /// Something came that is not the wire format.
    #[error("{provider} sent something that is not its wire format: {message}")]
    Malformed {
        provider: &'static str,
        message: String,
    },
    /// The conversation does not fit the model's context window.
    #[error("the conversation no longer fits the model's context window: {message}")]
    ContextWindowExceeded {
        /// The provider's message.
        message: String,
    },
    /// A cassette does not hold this request, or cannot be read or written.
    #[error("cassette {path}: {message}")]
    Cassette {
        /// Which file.
        path: String,
        message: String,
    },
    /// The call could pass the limit on money or tokens, so it was not made.
    #[error("{message}")]
    BudgetExceeded {
        /// The limit, what was used of it and what the call could use.
        message: String,
    },
    /// The next try would come after the time that the caller has.
    #[error("{message}")]
    OutOfTime {
        /// What was waited for.
        message: String,
    },
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl ModelError {
    /// Whether the provider may charge for the try that failed so.
    pub fn may_be_charged(&self) -> bool {
        match self {
            Self::Api { status, .. } => *status == 200,
            Self::Connection {
                may_have_arrived, ..
            } => *may_have_arrived,
            Self::BrokenStream { .. } | Self::Malformed { .. } | Self::Cancelled => true,
            Self::ContextWindowExceeded { .. }
            | Self::Cassette { .. }
            | Self::BudgetExceeded { .. }
            | Self::OutOfTime { .. } => false,
        }
    }

    /// Whether the provider has too much to do for this model.
    pub fn is_overload(&self) -> bool {
        match self {
            Self::Api { status, kind, .. } => *status == 529 || kind == "overloaded_error",
            _ => false,
        }
    }

    /// Adds to what a person reads.
    pub(crate) fn with_note(mut self, note: &str) -> Self {
        if let Self::Api { message, .. }
        | Self::Connection { message, .. }
        | Self::BrokenStream { message, .. }
        | Self::Malformed { message, .. } = &mut self
        {
            message.push_str("; ");
            message.push_str(note);
        }
        self
    }
}

/// A provider that cannot be set up as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The text is not an address a provider can live at.
    #[error(
        "`{text}` is not a base URL: {message} (expected something like https://api.example.com)"
    )]
    BaseUrl {
        /// What was given, credentials left out.
        text: String,
        /// What is wrong with it.
        message: String,
    },
    #[error(
        "the value of {variable} cannot be sent in an HTTP header: it has control characters or line breaks in it; set it to the key alone"
    )]
    Secret {
        /// The variable people set it with.
        variable: &'static str,
    },
    /// Another header that cannot be sent.
    #[error("`{value}` cannot be sent as the HTTP header `{name}`")]
    Header { name: String, value: String },
    /// The HTTP client cannot be built.
    #[error("cannot set up HTTPS: {message}")]
    Client { message: String },
}

//! Permission rules and modes, shell splitting, secret redaction, path safety; pure

//! Who signed in at a provider, and the role that the settings give them.
//!
//! A token is known by `sign-in:PROVIDER:NAME#SUBJECT`: the name is what people call themselves and
//! may change, the subject is what the provider knows them by for good. Roles are looked up again
//! whenever the token is used, so who is taken out of the settings is out at once.

use codespar_protocol::AccessRole;

use super::server::{ServerSettings, SignInKind, SignInSettings};

/// How the tokens of these people begin.
const PREFIX: &str = "sign-in:";
/// OpenID Connect allows so many characters.
const MOST_SUBJECT: usize = 255;
const MOST_EMAIL: usize = 254;

/// Somebody whom a provider vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// The login at GitHub; elsewhere an e-mail address that the provider has verified. Has no `#`.
    name: String,
    /// What the provider knows the account by.
    subject: String,
}

impl SignedIn {
    pub fn at_github(login: String, id: u64) -> Self {
        Self {
            name: login,
            subject: id.to_string(),
        }
    }

    /// An address counts only if it is verified and is one that cannot be taken for another.
    pub fn by_oidc(subject: &str, verified_email: Option<&str>) -> Option<Self> {
        let is_subject = (1..=MOST_SUBJECT).contains(&subject.len())
            && subject
                .bytes()
                .all(|byte| byte.is_ascii_graphic() || byte == b' ');
        is_subject.then(|| Self {
            name: verified_email
                .map(str::to_ascii_lowercase)
                .filter(|email| is_email(email))
                .unwrap_or_default(),
            subject: subject.to_owned(),
        })
    }

    /// The provider and the person whose token has this name.
    pub fn of_token(name: &str) -> Option<(&str, Self)> {
        let (provider, person) = name.strip_prefix(PREFIX)?.split_once(':')?;
        let (name, subject) = person.split_once('#')?;
        let person = Self {
            name: name.to_owned(),
            subject: subject.to_owned(),
        };
        Some((provider, person))
    }

    /// Whether the provider knows both as the same account, whatever they are called now.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.subject == other.subject
    }

    pub fn token_name(&self, provider: &str) -> String {
        format!("{PREFIX}{provider}:{}#{}", self.name, self.subject)
    }

    /// For people.
    pub fn shown(&self) -> &str {
        match self.name.as_str() {
            "" => &self.subject,
            name => name,
        }
    }

    /// The strongest role that applies; none for strangers.
    pub fn role(&self, settings: &SignInSettings) -> Option<AccessRole> {
        let by_name = match settings.kind {
            SignInKind::Oidc => {
                let emails = settings.emails.iter();
                let mut own = emails.filter(|(email, _)| {
                    !self.name.is_empty() && email.eq_ignore_ascii_case(&self.name)
                });
                own.next().map(|(_, role)| *role)
            }
            SignInKind::Github => {
                let users = settings.users.iter();
                let mut own = users.filter(|(login, _)| login.eq_ignore_ascii_case(&self.name));
                own.next().map(|(_, role)| *role)
            }
        };
        let by_subject = match settings.kind {
            SignInKind::Oidc => settings.users.get(&self.subject).copied(),
            // No login has a colon in it.
            SignInKind::Github => settings.users.get(&format!("id:{}", self.subject)).copied(),
        };
        // A setup with another role for everyone is refused at the start; here it counts for nothing.
        let everyone = settings.everyone.filter(|role| *role == AccessRole::Read);
        [by_name, by_subject, everyone].into_iter().flatten().max()
    }
}

/// Something that is an address for everybody who reads it.
fn is_email(text: &str) -> bool {
    let is_part = |part: &str| {
        let is_letter = |c: char| c.is_ascii_graphic() && !"#\"(),:;<>@[\\]".contains(c);
        !part.is_empty() && part.chars().all(is_letter)
    };
    let parts = text.split_once('@');
    text.len() <= MOST_EMAIL && parts.is_some_and(|(user, host)| is_part(user) && is_part(host))
}

impl ServerSettings {
    /// Whether the settings still give the person of a token its role. Tokens that are not of a
    /// person who signed in at a provider are left alone.
    pub fn grants(&self, token: &str, role: AccessRole) -> bool {
        let Some((provider, person)) = SignedIn::of_token(token) else {
            return true;
        };
        let settings = self.sign_in.get(provider);
        settings.and_then(|settings| person.role(settings)) == Some(role)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "this is a test")]

    use serde_json::{Value, json};

    use super::*;

    fn settings(value: &Value) -> SignInSettings {
        serde_json::from_value(value.clone()).unwrap()
    }

    #[test]
    fn roles_are_by_subject_and_by_verified_address_and_strangers_have_none() {
        let corp = settings(&json!({
            "users": {"s1": "write", "ada@example.com": "admin"},
            "emails": {"Ada@Example.com": "merge"},
        }));
        let role = |subject: &str, email: Option<&str>| {
            SignedIn::by_oidc(subject, email).unwrap().role(&corp)
        };
        assert_eq!(role("s1", None), Some(AccessRole::Write));
        assert_eq!(role("s2", Some("ADA@example.com")), Some(AccessRole::Merge));
        assert_eq!(role("s1", Some("ada@example.com")), Some(AccessRole::Merge));
        assert_eq!(role("s2", None), None);
        assert_eq!(role("s2", Some("eve@example.com")), None);
        // An address is no subject.
        assert_eq!(role("s2", Some("s1")), None);
    }

    #[test]
    fn a_login_that_somebody_else_has_taken_is_another_account() {
        let github = settings(&json!({
            "type": "github", "users": {"Ada": "write", "id:7": "admin"},
            "emails": {"eve": "admin"},
        }));
        let role = |login: &str, id| SignedIn::at_github(login.to_owned(), id).role(&github);
        assert_eq!(role("ada", 1), Some(AccessRole::Write));
        assert_eq!(role("renamed", 7), Some(AccessRole::Admin));
        assert_eq!(role("7", 1), None);
        assert_eq!(role("eve", 2), None);
    }

    #[test]
    fn a_token_counts_as_long_as_the_settings_say_so() {
        let server: ServerSettings = serde_json::from_value(json!({
            "signIn": {"corp": {"emails": {"ada@example.com": "merge"}}},
        }))
        .unwrap();
        let ada = "sign-in:corp:ada@example.com#s1";
        assert!(server.grants(ada, AccessRole::Merge));
        assert!(!server.grants(ada, AccessRole::Admin));
        assert!(!server.grants("sign-in:corp:eve@example.com#s2", AccessRole::Read));
        assert!(!server.grants("sign-in:gone:ada@example.com#s1", AccessRole::Merge));
        assert!(server.grants("ci", AccessRole::Admin));
    }

    #[test]
    fn everyone_may_read_at_most() {
        let person = SignedIn::at_github("eve".to_owned(), 1);
        for (everyone, expected) in [
            (json!("read"), Some(AccessRole::Read)),
            (json!("write"), None),
            (json!("admin"), None),
        ] {
            let settings = settings(&json!({"type": "github", "everyone": everyone}));
            assert_eq!(person.role(&settings), expected);
        }
    }

    #[test]
    fn nothing_in_a_name_is_taken_for_a_subject() {
        for email in [
            "a#admin@example.com",
            "ada@example.com#x@evil.example",
            "a@b@c",
            "\"ada@example.com\"@evil.example",
            "ada@example.com\u{0}",
            "аda@example.com",
            "@",
            "",
        ] {
            let person = SignedIn::by_oidc("s", Some(email)).unwrap();
            assert_eq!(person.name, "", "{email}");
        }
        for subject in ["", "a\nb", "ä", &"s".repeat(256)] {
            assert_eq!(SignedIn::by_oidc(subject, None), None, "{subject}");
        }
        let person = SignedIn::by_oidc("a#b:c", Some("ada@example.com")).unwrap();
        let name = person.token_name("corp");
        assert_eq!(name, "sign-in:corp:ada@example.com#a#b:c");
        assert_eq!(SignedIn::of_token(&name), Some(("corp", person)));
        for other in ["ci", "proxy:ada#1", "corp:ada#1", "sign-in:corp"] {
            assert_eq!(SignedIn::of_token(other), None, "{other}");
        }
    }
}

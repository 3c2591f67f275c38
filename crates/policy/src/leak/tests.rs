use rstest::rstest;

use super::*;

fn leak(text: &str, path: Option<&str>) -> Option<Leak> {
    Redactor::new([("DB_PASSWORD", "hunter22hunter22")]).leak(text, "", path)
}

#[rstest]
#[case("password is hunter22hunter22")]
#[case("TOKEN = \"ghp_0123456789abcdefghijABCDEFGHIJ012345\"")]
#[case("aws = AKIAIOSFODNN7QWERTYU")]
#[case("const k = 'sk-ant-api03-AbCdEfGhIj0123KlMnOpQrSt'")]
#[case("xoxb-1234567890-abcdefghij")]
#[case("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLWhlcmU")]
#[case("-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAv0bMKmkcQ0w1Yk2yY3oQ7Zx1PlkBvY8Q\n")]
#[case("https://hooks.example.com/services/T0123456789/B0123456789/abcdefABCDEF0123456789ab")]
#[case("SECRET_KEY = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b\"")]
#[case("apiKey: 'f3Kq9ZpL2mXv8RtB6nWy'")]
#[case("DB_PASSWORD=xK93jfLs02mVnQp8Zr1T")]
#[case("url = \"postgres://ann:xK93jfLs02mVnQp8Zr1T@db/x\"")]
#[case("const x = \"q8Zr1TxK93jfLs02mVnQp8Zr1TxK93jfLa7\"")]
fn secrets_stop_a_publish(#[case] text: &str) {
    assert_eq!(
        leak(&format!("first\n{text}\n"), Some("a.py")).map(|leak| leak.line),
        Some(2),
        "{text}"
    );
}

#[rstest]
#[case("commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b")]
#[case("rev = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b\"")]
#[case("checksum = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"")]
#[case("\"integrity\": \"sha512-q8Zr1TxK93jfLs02mVnQp8Zr1TxK93jfLs02mVnQp8Zr1TxK93jfLs02mVnQ==\"")]
#[case("id: \"550e8400-e29b-41d4-a716-446655440000\"")]
#[case("session_token_id = \"550e8400-e29b-41d4-a716-446655440000\"")]
#[case(
    "src=\"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk\""
)]
#[case("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Zr1TxK93jfLs02mVnQp8Zr1TxK93jfLs02mVn me")]
#[case("token = os.environ[\"GITHUB_TOKEN\"]")]
#[case("api_key: ${{ secrets.PRODUCTION_API_KEY_2 }}")]
#[case("password = \"correct-horse-battery-staple\"")]
#[case("API_KEY=your-api-key-goes-here-12345")]
#[case("token: test-token-123456789")]
#[case("AKIAIOSFODNN7EXAMPLE")]
#[case("sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxx")]
#[case("class=\"sk-circle-fade-dot-spinner-12\"")]
#[case("if text.starts_with(\"-----BEGIN RSA PRIVATE KEY-----\") {")]
#[case("postgres://postgres:postgres@localhost:5432/test")]
#[case("let name = \"getUserByIdAndOrganisationName2WithDefaults\"")]
#[case("path = \"src/components/UserProfile/AvatarImage2/IndexPage\"")]
#[case("Authorization: Bearer <token>")]
#[case("max_tokens: 100000000000000000000")]
#[case("alphabet = \"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789\"")]
fn ordinary_text_does_not(#[case] text: &str) {
    assert_eq!(leak(text, Some("a.py")), None, "{text}");
}

#[test]
fn checksums_of_a_lock_file_do_not() {
    let text = "\"x\": \"q8Zr1TxK93jfLs02mVnQp8Zr1TxK93jfLs7\"\n";
    assert!(leak(text, Some("a.json")).is_some());
    assert_eq!(leak(text, Some("package-lock.json")), None);
    assert_eq!(leak(text, Some("Cargo.lock")), None);
}

#[test]
fn a_block_of_base64_is_data() {
    let line = "  \"q8Zr1TxK93jfLs02mVnQp8Zr1TxK93jfLs7\",\n";
    assert_eq!(leak(&line.repeat(5), Some("image.rs")), None);
}

#[test]
fn what_was_there_before_is_not_published_now() {
    let old = "a\nTOKEN = \"ghp_0123456789abcdefghijABCDEFGHIJ012345\"\n";
    let redactor = Redactor::by_shape();
    assert_eq!(redactor.leak(&format!("new\n{old}"), old, None), None);
    assert!(redactor.leak(old, "", None).is_some());
}

//! Key management services with a fake network: requests sent, their hosts, and the handling of responses.

use std::cell::RefCell;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use fl_sops::kms::{
    AwsCredentials, AzureCredentials, CloudRequest, Destinations, Endpoints, GcpCredentials, KeyServices,
    Network, ServiceCredentials, Token,
};
use fl_sops::{KeyService, MasterKey, NetworkError};
use fl_types::Secret;
use serde_json::{Value, json};

const DATA_KEY: &[u8] = b"0123456789abcdef0123456789abcdef";

#[derive(Default)]
struct Fake {
    calls: RefCell<Vec<CloudRequest>>,
    /// Responses by suffix of the address.
    answers: BTreeMap<&'static str, (u16, Vec<u8>)>,
}

impl Fake {
    fn answer(mut self, end: &'static str, status: u16, body: impl Into<Vec<u8>>) -> Self {
        self.answers.insert(end, (status, body.into()));
        self
    }

    fn request(&self, at: usize) -> CloudRequest {
        self.calls.borrow()[at].clone()
    }
}

impl Network for &Fake {
    fn send(&self, request: &CloudRequest) -> Result<(u16, Secret<Vec<u8>>), NetworkError> {
        self.calls.borrow_mut().push(request.clone());
        let found = self.answers.iter().find(|(end, _)| request.url.ends_with(*end));
        let (status, body) =
            found.map(|(_, a)| a.clone()).ok_or_else(|| NetworkError("no server".to_owned()))?;
        Ok((status, Secret::new(body)))
    }

    fn now(&self) -> i64 {
        1_800_000_000
    }
}

fn ask(fake: &Fake, credentials: &ServiceCredentials, key: &MasterKey) -> Result<Vec<u8>, String> {
    let endpoints = Endpoints::default();
    let services = KeyServices { credentials, endpoints: &endpoints, network: fake };
    services.data_key(key).expect("a key of a service").map(Secret::into_exposed).map_err(|e| e.to_string())
}

fn header(request: &CloudRequest, name: &str) -> String {
    request.headers.iter().find(|(n, _)| *n == name).map(|(_, v)| v.expose().clone()).unwrap_or_default()
}

fn body(request: &CloudRequest) -> String {
    String::from_utf8(request.body.expose().clone()).expect("text")
}

fn plain(name: &str, encoded: String) -> Vec<u8> {
    json!({ name: encoded }).to_string().into_bytes()
}

fn vault_key() -> MasterKey {
    MasterKey::Vault {
        address: "https://vault.example:8200/".to_owned(),
        engine_path: "sops/transit".to_owned(),
        key_name: "web".to_owned(),
        encrypted: "vault:v1:abc".to_owned(),
    }
}

#[test]
fn vault() {
    let credentials = ServiceCredentials {
        vault_token: Some(Token::new(Secret::new("canary".to_owned()), Destinations::Any)),
        ..Default::default()
    };
    let good = json!({"data": {"plaintext": STANDARD.encode(DATA_KEY)}}).to_string();
    let fake = Fake::default().answer("/decrypt/web", 200, good);
    assert_eq!(ask(&fake, &credentials, &vault_key()).expect("opens"), DATA_KEY);
    let request = fake.request(0);
    assert_eq!(
        (request.method, request.url.as_str()),
        ("POST", "https://vault.example:8200/v1/sops/transit/decrypt/web")
    );
    assert_eq!(header(&request, "x-vault-token"), "canary");
    assert_eq!(body(&request), r#"{"ciphertext":"vault:v1:abc"}"#);
    assert!(!format!("{request:?}").contains("canary"));
    for (status, text) in [(403, "{\"errors\":[\"canary\"]}"), (307, ""), (200, "{}"), (200, "canary")] {
        let fake = Fake::default().answer("/decrypt/web", status, text);
        let error = ask(&fake, &credentials, &vault_key()).expect_err("refused");
        assert!(!error.contains("canary"), "{error}");
    }
    let error = ask(&fake, &ServiceCredentials::default(), &vault_key()).expect_err("no token");
    assert!(error.contains("no Vault token"), "{error}");
}

/// The engine's own credentials are not sent to an address named by a file.
#[test]
fn engine_credentials_are_sent_only_to_configured_addresses() {
    let environment = |pairs: &[(&str, &str)]| {
        let pairs: BTreeMap<String, String> =
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        ServiceCredentials::from_variables(move |name| pairs.get(name).cloned())
    };
    let at = |address: &str, path: &str| MasterKey::Vault {
        address: address.to_owned(),
        engine_path: path.to_owned(),
        key_name: "web".to_owned(),
        encrypted: "vault:v1:abc".to_owned(),
    };
    let good = json!({"data": {"plaintext": STANDARD.encode(DATA_KEY)}}).to_string();
    let fake = || Fake::default().answer("/decrypt/web", 200, good.clone());
    let token = ("VAULT_TOKEN", "canary");
    let configured = environment(&[token, ("VAULT_ADDR", "https://vault.example:8200/")]);
    let sent = fake();
    assert_eq!(
        ask(&sent, &configured, &at("https://VAULT.example:8200", "transit")).expect("opens"),
        DATA_KEY
    );
    assert_eq!(header(&sent.request(0), "x-vault-token"), "canary");
    for (credentials, address) in [
        (&configured, "http://vault.example:8200"),
        (&configured, "https://vault.example"),
        (&configured, "https://evil.example"),
        (&configured, "https://vault.example:8200@evil.example"),
        (&environment(&[token]), "https://vault.example:8200"),
        (&environment(&[token, ("VAULT_ADDR", "vault.example")]), "https://vault.example"),
    ] {
        let network = fake();
        let error = ask(&network, credentials, &at(address, "transit")).expect_err(address);
        assert!(error.contains("the Vault token of the engine is not sent to"), "{error}");
        assert!(network.calls.borrow().is_empty(), "{address}");
    }
    // The path in the file cannot change the request either.
    for path in ["sys/seal?x=", "../../v1/sys", "transit/../sys", "auth/token/create#", "", "a//b", "a%2fb"] {
        let network = fake();
        let error = ask(&network, &configured, &at("https://vault.example:8200", path)).expect_err(path);
        assert!(error.contains("is not valid") && network.calls.borrow().is_empty(), "{path}: {error}");
    }
    // The identity of the machine is not used for a vault of another owner.
    let azure = AzureCredentials::from_yaml(b"clientId: c").expect("good");
    let machine = ServiceCredentials { azure: Some(azure), ..Default::default() };
    let network = Fake::default().answer("client_id=c", 200, plain("access_token", "canary".to_owned()));
    let key = MasterKey::AzureKeyVault {
        vault_url: "https://v.evil.example".to_owned(),
        name: "sops".to_owned(),
        version: "1a".to_owned(),
        encrypted: "c2VhbGVk".to_owned(),
    };
    let error = ask(&network, &machine, &key).expect_err("refused");
    assert!(error.contains("the Azure identity of the engine is not sent to"), "{error}");
    assert!(network.calls.borrow().is_empty());
}

#[test]
fn aws() {
    let aws =
        AwsCredentials::from_yaml(b"aws_access_key_id: AKID\naws_secret_access_key: canary\n").expect("good");
    let credentials = ServiceCredentials { aws: Some(aws), ..Default::default() };
    let key = |role: &str| MasterKey::AwsKms {
        arn: "arn:aws:kms:eu-west-1:123456789012:key/1".to_owned(),
        role: role.to_owned(),
        context: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
        encrypted: "c2VhbGVk".to_owned(),
    };
    let fake = Fake::default().answer(
        "kms.eu-west-1.amazonaws.com/",
        200,
        plain("Plaintext", STANDARD.encode(DATA_KEY)),
    );
    assert_eq!(ask(&fake, &credentials, &key("")).expect("opens"), DATA_KEY);
    let request = fake.request(0);
    assert_eq!(header(&request, "x-amz-target"), "TrentService.Decrypt");
    let sent: Value = serde_json::from_str(&body(&request)).expect("JSON");
    let want = json!({"CiphertextBlob": "c2VhbGVk", "KeyId": "arn:aws:kms:eu-west-1:123456789012:key/1",
        "EncryptionContext": {"app": "web"}});
    assert_eq!(sent, want);
    let signature = header(&request, "authorization");
    let start = "AWS4-HMAC-SHA256 Credential=AKID/20270115/eu-west-1/kms/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=";
    assert!(signature.starts_with(start), "{signature}");

    // With a role, its keys sign.
    let assumed = "<AssumeRoleResponse><Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>tok</SessionToken></Credentials></AssumeRoleResponse>";
    let fake = fake.answer("sts.eu-west-1.amazonaws.com/", 200, assumed);
    assert_eq!(ask(&fake, &credentials, &key("arn:aws:iam::1:role/r")).expect("opens"), DATA_KEY);
    assert!(body(&fake.request(1)).contains("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr"));
    assert_eq!(header(&fake.request(2), "x-amz-security-token"), "tok");
    assert!(header(&fake.request(2), "authorization").contains("Credential=ASIA/"));

    let refused = br#"{"__type":"AccessDeniedException","message":"canary"}"#.to_vec();
    let fake = Fake::default().answer("amazonaws.com/", 400, refused);
    let error = ask(&fake, &credentials, &key("")).expect_err("refused");
    assert_eq!(error, "AWS KMS answered with status 400 (AccessDeniedException)");
    let error = ask(&fake, &ServiceCredentials::default(), &key("")).expect_err("no credentials");
    assert!(error.contains("sops.aws-kms"), "{error}");
}

/// Generated for this test with `openssl genrsa`.
const PRIVATE_KEY: &str = include_str!("service-key.pem");

#[test]
fn google() {
    let account = json!({"type": "service_account", "client_email": "a@p.iam", "private_key_id": "k1",
        "private_key": PRIVATE_KEY, "token_uri": "https://oauth2.example/token"});
    let gcp = GcpCredentials::from_json(account.to_string().as_bytes()).expect("good");
    let credentials = ServiceCredentials { gcp: Some(gcp), ..Default::default() };
    let resource = "projects/p/locations/global/keyRings/r/cryptoKeys/k";
    let key = |resource: &str| MasterKey::GcpKms {
        resource_id: resource.to_owned(),
        encrypted: "c2VhbGVk".to_owned(),
    };
    let fake = Fake::default().answer("/token", 200, plain("access_token", "canary".to_owned())).answer(
        ":decrypt",
        200,
        plain("plaintext", STANDARD.encode(DATA_KEY)),
    );
    assert_eq!(ask(&fake, &credentials, &key(resource)).expect("opens"), DATA_KEY);
    let form = body(&fake.request(0));
    let assertion = form.split_once("assertion=").expect("an assertion").1;
    let parts: Vec<Vec<u8>> =
        assertion.split('.').map(|p| URL_SAFE_NO_PAD.decode(p).expect("base64")).collect();
    let claims: Value = serde_json::from_slice(&parts[1]).expect("JSON");
    assert_eq!(
        (claims["iss"].as_str(), claims["aud"].as_str()),
        (Some("a@p.iam"), Some("https://oauth2.example/token"))
    );
    assert_eq!((claims["iat"].as_i64(), claims["exp"].as_i64()), (Some(1_800_000_000), Some(1_800_003_600)));
    let spki = fl_verify::PublicKey::from_pem(include_str!("service-key.pub")).expect("a key");
    let signed = assertion.rsplit_once('.').expect("three parts").0;
    assert!(spki.verify(signed.as_bytes(), &parts[2]));
    let request = fake.request(1);
    assert_eq!(request.url, format!("https://cloudkms.googleapis.com/v1/{resource}:decrypt"));
    assert_eq!(header(&request, "authorization"), "Bearer canary");
    for bad in [
        "",
        "projects/p",
        "projects/p/locations/../keyRings/r/cryptoKeys/k",
        "projects/p/locations/l/keyRings/r/cryptoKeys/k?x=y",
    ] {
        assert!(ask(&fake, &credentials, &key(bad)).is_err(), "{bad}");
    }
    for bad in
        ["", "{}", "{\"type\":\"external_account\"}", "{\"type\":\"service_account\",\"private_key\":\"x\"}"]
    {
        assert!(GcpCredentials::from_json(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn azure() {
    let key = || MasterKey::AzureKeyVault {
        vault_url: "https://v.vault.azure.net/".to_owned(),
        name: "sops".to_owned(),
        version: "1a".to_owned(),
        encrypted: "c2VhbGVk".to_owned(),
    };
    let with = |text: &str| {
        let azure = AzureCredentials::from_yaml(text.as_bytes()).expect("good");
        ServiceCredentials { azure: Some(azure), ..Default::default() }
    };
    let fake = || {
        Fake::default()
            .answer("/oauth2/v2.0/token", 200, plain("access_token", "canary".to_owned()))
            .answer("client_id=c", 200, plain("access_token", "canary".to_owned()))
            .answer("api-version=7.4", 200, plain("value", URL_SAFE_NO_PAD.encode(DATA_KEY)))
    };
    let secret = fake();
    assert_eq!(
        ask(&secret, &with("tenantId: t\nclientId: c\nclientSecret: s+s"), &key()).expect("opens"),
        DATA_KEY
    );
    assert_eq!(secret.request(0).url, "https://login.microsoftonline.com/t/oauth2/v2.0/token");
    assert_eq!(
        body(&secret.request(0)),
        "grant_type=client_credentials&scope=https%3A%2F%2Fvault.azure.net%2F.default&client_id=c&client_secret=s%2Bs"
    );
    assert_eq!(secret.request(1).url, "https://v.vault.azure.net/keys/sops/1a/decrypt?api-version=7.4");
    assert_eq!(body(&secret.request(1)), r#"{"alg":"RSA-OAEP-256","value":"c2VhbGVk"}"#);
    assert_eq!(header(&secret.request(1), "authorization"), "Bearer canary");

    let managed = fake();
    assert_eq!(ask(&managed, &with("clientId: c"), &key()).expect("opens"), DATA_KEY);
    assert_eq!(header(&managed.request(0), "metadata"), "true");

    let block = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let pem: String = format!("{PRIVATE_KEY}{block}").lines().map(|l| format!("  {l}\n")).collect();
    let certificate = fake();
    let text = format!(
        "tenantId: t\nclientId: c\nauthorityHost: https://login.example/\nclientCertificate: |\n{pem}"
    );
    assert_eq!(ask(&certificate, &with(&text), &key()).expect("opens"), DATA_KEY);
    assert_eq!(certificate.request(0).url, "https://login.example/t/oauth2/v2.0/token");
    assert!(body(&certificate.request(0)).contains("&client_assertion="));
}

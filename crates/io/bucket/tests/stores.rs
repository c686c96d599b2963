//! Requests and responses of buckets on loopback.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod server;

use std::io::Read;
use std::sync::Arc;

use base64::Engine as _;
use fl_bucket::{
    AwsKeys, AzureIdentity, AzureKind, Bucket, BucketOptions, Budget, Destinations, Error, GoogleCredentials,
    Key, Login, Provider, SharedKey,
};
use fl_types::Secret;
use rsa::pkcs8::EncodePrivateKey as _;
use server::{Answer, Asked, refusal, start, xml};

fn options(provider: Provider, host: &str, login: Login) -> BucketOptions {
    BucketOptions {
        insecure: true,
        login,
        ..BucketOptions::new(fl_http::Owner::engine(), provider, host, "apps")
    }
}

fn keys() -> Login {
    Login::Aws(AwsKeys {
        access_key_id: "me".to_owned(),
        secret_access_key: Secret::new("canary".to_owned()),
        session_token: Secret::default(),
        destinations: Destinations::Any,
    })
}

fn budget() -> Arc<Budget> {
    Arc::new(Budget::new(1 << 20, lease()))
}

async fn listed(bucket: &Bucket, prefix: &str) -> Result<Vec<(String, String)>, Error> {
    let mut all = Vec::new();
    bucket
        .list(prefix, &mut |key, etag| {
            all.push((key.to_owned(), etag.to_owned()));
            Ok(())
        })
        .await?;
    Ok(all)
}

async fn text(bucket: &Bucket, key: &str) -> Result<Option<(String, String)>, Error> {
    let found = bucket.get(&Key::check(key).unwrap(), &budget()).await?;
    Ok(found.map(|mut object| {
        let mut text = String::new();
        object.content.read_to_string(&mut text).unwrap();
        assert_eq!(text.len() as u64, object.size);
        (object.etag, text)
    }))
}

fn list_page(keys: &[&str], next: &str) -> String {
    let objects: String = keys
        .iter()
        .map(|k| format!("<Contents><Key>{k}</Key><ETag>&quot;e-{k}&quot;</ETag></Contents>"))
        .collect();
    let more = if next.is_empty() {
        "<IsTruncated>false</IsTruncated>".to_owned()
    } else {
        format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{next}</NextContinuationToken>")
    };
    format!("<ListBucketResult>{more}{objects}<EncodingType>url</EncodingType></ListBucketResult>")
}

fn s3(asked: &Asked) -> Answer {
    match (asked.path(), asked.query("location"), asked.query("list-type")) {
        ("/apps/", Some(_), _) => xml(200, "<LocationConstraint>garage</LocationConstraint>"),
        ("/apps/", None, Some(_)) => match asked.query("continuation-token") {
            None => xml(200, list_page(&["a", "b%2Fc"], "t&amp; 1")),
            Some("t%26%201") => xml(200, list_page(&["d"], "")),
            _ => refusal(400, "InvalidArgument", "no such token"),
        },
        ("/apps/", ..) => xml(200, ""),
        ("/apps/b/c%20d", ..) => (200, vec![("etag", "\"x\"".to_owned())], b"content".to_vec()),
        ("/apps/large", ..) => (200, vec![("etag", "\"l\"".to_owned())], vec![b'x'; 200_000]),
        ("/apps/huge", ..) => (200, vec![("etag", "\"h\"".to_owned())], vec![b'x'; 2 << 20]),
        _ => refusal(404, "NoSuchKey", "The specified key does not exist."),
    }
}

#[tokio::test]
async fn s3_with_keys() {
    let peer = start(true, s3).await;
    let bucket = Bucket::new(options(Provider::S3, &peer.host, keys())).unwrap();
    assert!(bucket.exists().await.unwrap());
    let all = listed(&bucket, "p/q").await.unwrap();
    let want = [("a", "e-a"), ("b/c", "e-b%2Fc"), ("d", "e-d")];
    assert_eq!(all, want.map(|(k, e)| (k.to_owned(), e.to_owned())));
    assert_eq!(text(&bucket, "b/c d").await.unwrap(), Some(("x".to_owned(), "content".to_owned())));
    assert_eq!(text(&bucket, "large").await.unwrap().unwrap().1.len(), 200_000);
    assert_eq!(text(&bucket, "none").await.unwrap(), None);
    assert!(matches!(text(&bucket, "huge").await, Err(Error::TooLarge(_))));
    let requests = peer.requests();
    assert_eq!(
        &requests[..4],
        [
            "GET /apps/?location=",
            "HEAD /apps/",
            "GET /apps/?delimiter=&encoding-type=url&fetch-owner=true&list-type=2&prefix=p%2Fq",
            "GET /apps/?continuation-token=t%26%201&delimiter=&encoding-type=url&fetch-owner=true&list-type=2&prefix=p%2Fq",
        ]
    );
    for (n, asked) in peer.seen.lock().unwrap().iter().enumerate() {
        let region = if n == 0 { "us-east-1" } else { "garage" };
        let header = &asked.headers["authorization"];
        assert!(header.contains("Credential=me/") && header.contains(&format!("/{region}/s3/")), "{header}");
        assert!(!format!("{asked:?}").contains("canary"));
    }
}

#[tokio::test]
async fn s3_without_keys_signs_nothing() {
    let peer = start(true, s3).await;
    let bucket = Bucket::new(options(Provider::S3, &peer.host, Login::Anonymous)).unwrap();
    assert!(bucket.exists().await.unwrap());
    assert_eq!(listed(&bucket, "").await.unwrap().len(), 3);
    assert!(peer.seen.lock().unwrap().iter().all(|a| !a.headers.contains_key("authorization")));
    assert_eq!(peer.requests()[..2], ["GET /apps/?location=", "HEAD /apps/"]);
}

#[tokio::test]
async fn error_messages_match_the_store() {
    let told = |answer: Answer| async move {
        let peer = start(false, move |_| answer.clone()).await;
        let bucket = Bucket::new(options(Provider::S3, &peer.host, Login::Anonymous)).unwrap();
        (
            bucket.exists().await.map_err(|e| e.to_string()),
            listed(&bucket, "").await.map_err(|e| e.to_string()),
        )
    };
    let (exists, list) = told(refusal(404, "NoSuchBucket", "gone")).await;
    // An answer to HEAD has no body.
    assert_eq!((exists, list), (Ok(false), Err("gone".to_owned())));
    let (exists, list) = told(refusal(403, "AccessDenied", "")).await;
    assert_eq!((exists, list), (Err("Access Denied.".to_owned()), Err("Access Denied.".to_owned())));
    // Recorded: what the store says to the question where the bucket is comes first.
    let (exists, _) = told((400, Vec::new(), b"bad".to_vec())).await;
    assert_eq!(exists, Err("bad".to_owned()));
    let (exists, _) = told(refusal(400, "InvalidRequest", "not well")).await;
    assert_eq!(exists, Err("not well".to_owned()));
    let (_, list) = told(xml(200, "<html></html>")).await;
    assert_eq!(list, Err("expected element type <ListBucketResult> but have <html>".to_owned()));
}

/// Transient errors are retried; a `Retry-After` is honoured.
#[tokio::test]
async fn passing_trouble_is_waited_out() {
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = count.clone();
    let peer = start(false, move |asked| {
        if counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 2 {
            return refusal(500, "InternalError", "again");
        }
        s3(asked)
    })
    .await;
    let bucket = Bucket::new(options(Provider::S3, &peer.host, Login::Anonymous)).unwrap();
    assert!(bucket.exists().await.unwrap());
    assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), 4);
}

/// N10: the Retry-After of a store holds for all buckets of an owner, retries included.
#[tokio::test]
async fn retry_after_of_a_store_is_honoured() {
    let busy = (429, vec![("retry-after", "120".to_owned())], Vec::new());
    let peer = start(true, move |_| busy.clone()).await;
    for name in ["apps", "other"] {
        let mut options = options(Provider::S3, &peer.host, Login::Anonymous);
        options.bucket = name.to_owned();
        let bucket = Bucket::new(options).unwrap();
        for _ in 0..3 {
            let error = bucket.exists().await.unwrap_err().to_string();
            assert!(error.contains("is throttled"), "{error}");
        }
    }
    assert_eq!(peer.requests().len(), 1, "requests inside the forbidden window");
}

/// E06: a redirect takes neither keys nor signatures anywhere.
#[tokio::test]
async fn redirects_are_not_followed() {
    let other = start(true, s3).await;
    let target = format!("http://{}/apps/", other.host);
    let peer = start(true, move |_| (307, vec![("location", target.clone())], Vec::new())).await;
    let bucket = Bucket::new(options(Provider::S3, &peer.host, keys())).unwrap();
    assert!(bucket.exists().await.is_err() && listed(&bucket, "").await.is_err());
    assert!(text(&bucket, "a").await.is_err());
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn keys_of_a_token_service() {
    let sts = start(true, |asked: &Asked| {
        assert_eq!((asked.method.as_str(), asked.path()), ("POST", "/"));
        xml(200, "<AssumeRoleWithLDAPIdentityResponse><AssumeRoleWithLDAPIdentityResult><Credentials><AccessKeyId>short</AccessKeyId><SecretAccessKey>lived</SecretAccessKey><SessionToken>token</SessionToken></Credentials></AssumeRoleWithLDAPIdentityResult></AssumeRoleWithLDAPIdentityResponse>")
    })
    .await;
    let peer = start(true, s3).await;
    let login = Login::Ldap {
        endpoint: format!("http://{}/", sts.host),
        username: "ann".to_owned(),
        password: Secret::new("p&w".to_owned()),
        ca: None,
        client_certificate: None,
    };
    let bucket = Bucket::new(options(Provider::S3, &peer.host, login)).unwrap();
    assert!(bucket.exists().await.unwrap());
    listed(&bucket, "").await.unwrap();
    let asked = sts.seen.lock().unwrap().clone();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        asked[0].body,
        "Action=AssumeRoleWithLDAPIdentity&LDAPPassword=p%26w&LDAPUsername=ann&Version=2011-06-15"
    );
    let last = peer.seen.lock().unwrap().last().unwrap().clone();
    assert_eq!(last.headers["x-amz-security-token"], "token");
    assert!(last.headers["authorization"].contains("Credential=short/"));
}

#[tokio::test]
async fn google() {
    let key = rsa::RsaPrivateKey::new(&mut rand::rng(), 1024).unwrap();
    let der = base64::engine::general_purpose::STANDARD.encode(key.to_pkcs8_der().unwrap().as_bytes());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n");
    let peer =
        start(true, |asked: &Asked| match (asked.path(), asked.query("pageToken"), asked.query("alt")) {
            ("/token", ..) => (200, vec![], br#"{"access_token": "tok"}"#.to_vec()),
            ("/storage/v1/b/apps", ..) => (200, vec![], b"{}".to_vec()),
            ("/storage/v1/b/apps/o", None, _) => (
                200,
                vec![],
                br#"{"items": [{"name": "a/b", "etag": "CK="}], "nextPageToken": "n"}"#.to_vec(),
            ),
            ("/storage/v1/b/apps/o", Some("n"), _) => (200, vec![], b"{}".to_vec()),
            ("/storage/v1/b/apps/o/a%2Fb", _, None) => {
                (200, vec![], br#"{"etag": "CK=", "generation": "17"}"#.to_vec())
            }
            ("/storage/v1/b/apps/o/a%2Fb", _, Some("media")) if asked.query("generation") == Some("17") => {
                (200, vec![("etag", "\"md5\"".to_owned())], b"content".to_vec())
            }
            _ => (404, vec![], b"{}".to_vec()),
        })
        .await;
    let file = serde_json::json!({
        "type": "service_account", "client_email": "me@example", "private_key_id": "1",
        "private_key": pem, "token_uri": format!("http://{}/token", peer.host),
    });
    let login = Login::Google(GoogleCredentials::from_json(file.to_string().as_bytes()).unwrap());
    let bucket = Bucket::new(options(Provider::Google, &peer.host, login.clone())).unwrap();
    assert!(bucket.exists().await.unwrap());
    assert_eq!(listed(&bucket, "a/").await.unwrap(), [("a/b".to_owned(), "CK=".to_owned())]);
    assert_eq!(text(&bucket, "a/b").await.unwrap(), Some(("CK=".to_owned(), "content".to_owned())));
    assert_eq!(text(&bucket, "none").await.unwrap(), None);
    let asked = peer.seen.lock().unwrap().clone();
    assert_eq!(asked.iter().filter(|a| a.path() == "/token").count(), 1);
    assert!(asked[1..].iter().all(|a| a.headers["authorization"] == "Bearer tok"));
    let mut other = options(Provider::Google, &peer.host, login);
    other.bucket = "none".to_owned();
    assert!(!Bucket::new(other).unwrap().exists().await.unwrap());
}

#[tokio::test]
async fn azure_with_a_key_and_with_a_signature() {
    let peer = start(true, |asked: &Asked| match (asked.path(), asked.query("marker")) {
        ("/apps", None) => xml(200, "<EnumerationResults><Blobs><Blob><Name>a/b</Name><Properties><Etag>0x8D</Etag></Properties></Blob></Blobs><NextMarker>m</NextMarker></EnumerationResults>"),
        ("/apps", Some("m")) => xml(200, "<EnumerationResults><Blobs/><NextMarker/></EnumerationResults>"),
        ("/apps/a/b", _) => (200, vec![("etag", "\"0x8D\"".to_owned())], b"content".to_vec()),
        ("/none", _) => refusal(404, "ContainerNotFound", "none"),
        _ => refusal(404, "BlobNotFound", "none"),
    })
    .await;
    let endpoint = format!("http://{}/?keep=1", peer.host);
    for login in [
        Login::AzureKey(SharedKey::new("me", "a2V5").unwrap()),
        Login::AzureSas(Secret::new("?sig=a%2Bb&sv=1".to_owned())),
    ] {
        let bucket = Bucket::new(options(Provider::Azure, &endpoint, login.clone())).unwrap();
        assert!(bucket.exists().await.unwrap());
        // As in the header of the object, so that an unchanged container is known by its listing.
        assert_eq!(listed(&bucket, "a").await.unwrap(), [("a/b".to_owned(), "\"0x8D\"".to_owned())]);
        assert_eq!(text(&bucket, "a/b").await.unwrap(), Some(("\"0x8D\"".to_owned(), "content".to_owned())));
        assert_eq!(text(&bucket, "none").await.unwrap(), None);
        let mut other = options(Provider::Azure, &endpoint, login);
        other.bucket = "none".to_owned();
        assert!(!Bucket::new(other).unwrap().exists().await.unwrap());
    }
    let asked = peer.seen.lock().unwrap().clone();
    let (with_key, with_sas) = asked.split_at(asked.len() / 2);
    assert!(with_key.iter().all(|a| a.headers["authorization"].starts_with("SharedKey me:")));
    assert!(
        with_sas.iter().all(|a| a.query("sig") == Some("a%2Bb") && !a.headers.contains_key("authorization"))
    );
    assert!(asked.iter().all(|a| a.query("keep") == Some("1")));
    // A token is never sent in the open.
    let identity = AzureIdentity {
        authority: "https://login.example".to_owned(),
        kind: AzureKind::ManagedIdentity { client: "c".to_owned() },
    };
    assert!(Bucket::new(options(Provider::Azure, &endpoint, Login::Azure(identity))).is_err());
}

/// The engine's own AWS keys are for AWS and for endpoints its operator configured, whatever a Bucket names.
#[tokio::test]
async fn keys_of_the_engine_are_not_sent_to_an_endpoint_of_the_bucket() {
    let peer = start(true, s3).await;
    let environment = |endpoint: Option<String>| {
        AwsKeys::from_variables(move |name| match name {
            "AWS_ACCESS_KEY_ID" => Some("engine".to_owned()),
            "AWS_SECRET_ACCESS_KEY" | "AWS_SESSION_TOKEN" => Some("canary".to_owned()),
            "AWS_ENDPOINT_URL_S3" => endpoint.clone(),
            _ => None,
        })
        .unwrap()
    };
    let login = Login::Aws(environment(None));
    let bucket = Bucket::new(options(Provider::S3, &peer.host, login)).unwrap();
    let error = bucket.exists().await.unwrap_err().to_string();
    assert!(error.contains("the AWS identity of the engine is not sent to"), "{error}");
    assert!(peer.requests().is_empty(), "nothing was sent");
    let login = Login::Aws(environment(Some(format!("http://{}", peer.host))));
    let bucket = Bucket::new(options(Provider::S3, &peer.host, login)).unwrap();
    assert!(bucket.exists().await.unwrap());
    assert_eq!(peer.seen.lock().unwrap()[0].headers["x-amz-security-token"], "canary");
}

fn lease() -> fl_http::Lease {
    fl_http::ByteBudget::shared().lease(fl_http::Owner::engine(), std::time::Duration::from_secs(10))
}

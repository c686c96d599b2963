//! Dispatch of a request to its verb.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use jiff::Timestamp;

use super::headers::RequestHeaders;
use super::limits::{BodyPermit, RequestPermit};
use super::{ApiServer, Inner, health};
use crate::auth::{Attributes, User, impersonate};
use crate::body::{self, Body};
use crate::negotiate::{self, Accept};
use crate::request_info::{Query, RequestPath, ResourcePath, parse_path};
use crate::resource_type::ResourceType;
use crate::response::{self, ApiResponse};
use crate::status::{ApiError, ApiResult};
use crate::verbs::Verb;
use crate::{discovery, openapi, verbs};

/// The peer of a connection.
#[derive(Debug, Clone, Default)]
pub struct ConnectionInfo {
    /// The user of a verified client certificate, or the owner of an in-process client.
    pub user: Option<User>,
}

/// One request: identity, path, headers and body.
#[derive(Debug)]
pub(crate) struct RequestContext {
    pub(crate) user: User,
    pub(crate) method: Method,
    pub(crate) query: Query,
    pub(crate) headers: RequestHeaders,
    pub(crate) accept: Accept,
    pub(crate) body: Bytes,
    pub(crate) now: Timestamp,
    pub(crate) warnings: std::sync::Mutex<Vec<String>>,
    /// Objects that webhooks converted for this request.
    pub(crate) conversions: verbs::managed_fields::Conversions,
}

impl RequestContext {
    pub(crate) fn warn(&self, text: impl Into<String>) {
        self.warnings.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(text.into());
    }

    pub(crate) fn now_text(&self) -> String {
        super::rfc3339(self.now)
    }

    /// The field manager: the query parameter, or the first word of the user agent.
    pub(crate) fn manager(&self) -> String {
        let named = self.query.get("fieldManager");
        let agent = if named.is_empty() {
            self.headers.user_agent.split('/').next().unwrap_or_default()
        } else {
            named
        };
        let printable: String = agent.chars().filter(|c| !c.is_control()).take(128).collect();
        if printable.is_empty() { "unknown".to_owned() } else { printable }
    }
}

/// The resource or object that a request refers to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) rt: Arc<ResourceType>,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
}

impl Target {
    pub(crate) fn table(&self) -> &str {
        &self.rt.storage.prefix
    }

    pub(crate) fn key(&self) -> String {
        crate::object::key(if self.rt.namespaced { &self.namespace } else { "" }, &self.name)
    }
}

impl ApiServer {
    /// Handles one request.
    pub async fn handle<B>(&self, request: Request<B>, peer: ConnectionInfo) -> Response<Body>
    where
        B: http_body::Body<Data: Send> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let headers = match RequestHeaders::read(&parts.headers) {
            Ok(headers) => headers,
            Err(error) => return response::error_response(&error, &Accept::default()),
        };
        let pretty = wants_pretty(&query, &headers);
        let accept = negotiate::accept(&headers.accept, pretty);
        let shown = accept.clone().unwrap_or(Accept { pretty, ..Accept::default() });
        let early = |error: &ApiError| response::error_response(error, &shown);

        let authority = parts.uri.authority().map(http::uri::Authority::as_str);
        if let Err(error) = super::host_check::check(&headers, authority) {
            return early(&error);
        }
        if !crate::request_info::is_well_escaped(parts.uri.path()) {
            return early(&ApiError { plain: true, ..ApiError::new(400, "", "400 Bad Request") });
        }
        let now = self.inner.now();
        let user = match self.inner.user(&headers, peer, now, parts.uri.path()) {
            Ok(user) => user,
            Err(error) => return early(&error),
        };
        let path = parts.uri.path().to_owned();
        let request_path = parse_path(&path);
        let verb = verb_of(&parts.method, &request_path, &query);
        let one = call_for_one(verb.as_ref().ok().copied(), &query);
        let named = verb.as_ref().map_or_else(String::as_str, |verb| verb.as_str());
        if let Err(error) = self.inner.authorize(&user, &request_path, (named, one.as_str()), &path) {
            return early(&error);
        }
        let permit = match self.inner.permit(&user, &request_path, verb.as_ref().ok().copied()).await {
            Ok(permit) => permit,
            Err(error) => return early(&error),
        };
        let (body, _held) =
            match (&permit, body_limit(&parts.method, &request_path, self.inner.options.max_body)) {
                (Some(permit), Some(limit)) => {
                    match self.inner.in_flight.read_body(body, limit, permit).await {
                        Ok(read) => read,
                        Err(error) => return close(early(&error)),
                    }
                }
                _ => (Bytes::new(), BodyPermit::default()),
            };
        let ctx = RequestContext {
            user,
            method: parts.method,
            query,
            headers,
            accept: shown.clone(),
            body,
            now,
            warnings: std::sync::Mutex::default(),
            conversions: verbs::managed_fields::Conversions::default(),
        };
        let run = async {
            match (&request_path, accept) {
                (RequestPath::Resource(path), accept) => {
                    resource(&self.inner, &ctx, path, verb.ok(), accept.err()).await
                }
                // Health, metrics and OpenAPI have no content negotiation of objects.
                (RequestPath::Other(_), _) => other(&self.inner, &ctx, &request_path).await,
                (_, accept) => match negotiate::discovery(&ctx.headers.accept, accept) {
                    Ok(()) => other(&self.inner, &ctx, &request_path).await,
                    Err(error) => Err(error),
                },
            }
        };
        let outcome = self.inner.store.respond_when_durable(run).await;
        let outcome = outcome.unwrap_or_else(|lost| Err(lost.into()));
        let warnings = ctx.warnings.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let response = match outcome {
            Ok(answer) => {
                let include = ctx.query.get("includeObject");
                response::render(answer, &shown, &warnings, include, now.as_second())
            }
            Err(error) => {
                let mut response = response::error_response(&error, &shown);
                response::add_warnings(&mut response, &warnings);
                response
            }
        };
        // The permit of a long response is held until it was sent; a short one is buffered already.
        let long = http_body::Body::size_hint(response.body())
            .upper()
            .is_none_or(|n| n > body::MAX_FRAME_BYTES as u64);
        match permit.filter(|_| long) {
            Some(permit) => response.map(|body| body::with_guard(body, permit)),
            None => response,
        }
    }
}

/// Maximum bytes of `DeleteOptions`, which have only a few fields.
const MAX_DELETE_OPTIONS: usize = 64 << 10;

/// The maximum bytes of the body; `None` for requests without a body.
fn body_limit(method: &Method, request_path: &RequestPath, most: usize) -> Option<usize> {
    if !matches!(request_path, RequestPath::Resource(_)) {
        return None;
    }
    match *method {
        Method::POST | Method::PUT | Method::PATCH => Some(most),
        Method::DELETE => Some(most.min(MAX_DELETE_OPTIONS)),
        _ => None,
    }
}

/// Closes the connection after the response: the rest of the request body is not read.
fn close(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(http::header::CONNECTION, http::HeaderValue::from_static("close"));
    response
}

fn wants_pretty(query: &Query, headers: &RequestHeaders) -> bool {
    if query.has("pretty") {
        return query.flag("pretty");
    }
    ["curl/", "Wget/", "Mozilla/5.0"].iter().any(|p| headers.user_agent.starts_with(p))
}

/// The verb of a request for authorization; the method for paths outside the API groups.
fn verb_of(method: &Method, request_path: &RequestPath, query: &Query) -> Result<Verb, String> {
    let named = || method.as_str().to_lowercase();
    let RequestPath::Resource(path) = request_path else { return Err(named()) };
    Ok(match *method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if path.name.is_empty() => Verb::DeleteCollection,
        Method::DELETE => Verb::Delete,
        Method::GET | Method::HEAD => {
            // `watch` on the path of one object is a plain read, except for the deprecated `/watch/` paths.
            let collection = path.name.is_empty() && path.subresource.is_empty();
            if path.legacy_watch || (collection && query.flag("watch")) {
                Verb::Watch
            } else if path.name.is_empty() {
                Verb::List
            } else {
                Verb::Get
            }
        }
        _ => return Err(named()),
    })
}

/// The object name that the field selector of a list demands, for authorization.
fn call_for_one(verb: Option<Verb>, query: &Query) -> String {
    if !verb.is_some_and(Verb::is_collection) {
        return String::new();
    }
    let named = |part: &str| {
        let rest = part.trim().strip_prefix("metadata.name=")?;
        Some(rest.strip_prefix('=').unwrap_or(rest).to_owned())
    };
    query.get("fieldSelector").split(',').find_map(named).unwrap_or_default()
}

impl Inner {
    /// Acquires the permit of a request. Health checks need none, so that they are answered however busy a
    /// user is.
    async fn permit(
        &self,
        user: &User,
        request_path: &RequestPath,
        verb: Option<Verb>,
    ) -> ApiResult<Option<RequestPermit>> {
        match request_path {
            RequestPath::Other(path) if health::is_health(path) => Ok(None),
            RequestPath::Resource(_) if verb == Some(Verb::Watch) => self.in_flight.watch(user).map(Some),
            _ => self.in_flight.request(user).await.map(Some),
        }
    }

    fn user(
        &self,
        headers: &RequestHeaders,
        peer: ConnectionInfo,
        now: Timestamp,
        path: &str,
    ) -> ApiResult<User> {
        let bearer = headers.authorization.as_deref().and_then(|v| {
            let (scheme, token) = v.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let caller = match (peer.user, bearer) {
            (Some(user), _) => user,
            (None, Some(token)) => {
                self.authenticator.token(token, &[], now.as_second()).ok_or_else(ApiError::unauthorized)?
            }
            (None, None) if headers.authorization.is_some() || !self.options.anonymous => {
                return Err(ApiError::unauthorized());
            }
            (None, None) => User::anonymous(),
        };
        impersonate::effective(&self.authorizer, caller, &headers.impersonate, path)
    }

    fn authorize(
        &self,
        user: &User,
        request_path: &RequestPath,
        (verb, one): (&str, &str),
        path: &str,
    ) -> ApiResult<()> {
        let at = match request_path {
            RequestPath::Resource(p) => Attributes {
                verb: verb.to_owned(),
                group: p.group.clone(),
                resource: p.resource.clone(),
                subresource: p.subresource.clone(),
                name: if p.name.is_empty() { one.to_owned() } else { p.name.clone() },
                namespace: p.namespace.clone(),
                path: String::new(),
            },
            _ => Attributes {
                verb: verb.to_owned(),
                path: crate::request_info::decode(path, false),
                ..Attributes::default()
            },
        };
        if self.authorizer.allows(user, &at) {
            return Ok(());
        }
        if at.path.is_empty() {
            let rt = impersonate::resource_named(&at.group, &at.resource);
            return Err(ApiError::forbidden(&rt, &at.name, &impersonate::why(user, &at)));
        }
        let message = format!("forbidden: User {:?} cannot {verb} path {:?}", user.name, at.path);
        Err(ApiError::new(403, "Forbidden", message).with_details(serde_json::json!({})))
    }
}

async fn resource(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    path: &ResourcePath,
    verb: Option<Verb>,
    unservable: Option<ApiError>,
) -> ApiResult<ApiResponse> {
    let registry = inner.registry();
    let Some(rt) = registry.find(&path.group, &path.version, &path.resource) else {
        let builtin =
            path.group.is_empty() || fl_kubeschema::group_versions().iter().any(|gv| gv.group == path.group);
        return Err(if builtin { ApiError::no_such_resource() } else { ApiError::page_not_found() });
    };
    let inside = !path.namespace.is_empty() && path.resource != "namespaces";
    let misplaced = !rt.namespaced && inside || (rt.namespaced && !inside && !path.name.is_empty());
    if misplaced || !path.rest.is_empty() {
        return Err(if rt.is_custom() { ApiError::page_not_found() } else { ApiError::no_such_resource() });
    }
    if !rt.is_custom() {
        negotiate::check_acceptable(&ctx.headers.accept, matches!(verb, Some(Verb::List | Verb::Watch)))?;
    }
    if let Some(error) = unservable {
        return Err(error);
    }
    if let Some(why) = crate::request_info::name_problem(&path.name) {
        return Err(ApiError::bad_request(format!("Name parameter invalid: {:?}: {why}", path.name)));
    }
    let include = ctx.query.get("includeObject");
    if ctx.accept.view == crate::negotiate::View::Table
        && !matches!(include, "" | "None" | "Metadata" | "Object")
    {
        return Err(ApiError::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {include:?}: must be 'Metadata', 'Object', 'None', or empty"
        )));
    }
    if ctx.method.as_str() == "HEAD" {
        return Err(ApiError::method_not_allowed());
    }
    let target = Target {
        rt: rt.clone(),
        namespace: if rt.namespaced { path.namespace.clone() } else { String::new() },
        name: path.name.clone(),
        subresource: path.subresource.clone(),
    };
    let Some(verb) = verb else { return Err(ApiError::method_not_allowed()) };
    if let Some(warning) = rt.strategy.request_warning().filter(|_| rt.has_verb(verb.as_str())) {
        ctx.warn(warning);
    }
    verbs::run(inner, ctx, &target, verb).await
}

async fn other(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    request_path: &RequestPath,
) -> ApiResult<ApiResponse> {
    let reading = matches!(ctx.method.as_str(), "GET" | "HEAD");
    let registry = inner.registry();
    let found = match request_path {
        RequestPath::Groups { legacy } => discovery::groups(&registry, *legacy, &ctx.accept),
        RequestPath::Group(group) => discovery::group(&registry, group),
        RequestPath::GroupVersion { group, version } => discovery::resources(&registry, group, version),
        RequestPath::Resource(_) => Err(ApiError::no_such_resource()),
        RequestPath::Other(path) => match path.trim_end_matches('/') {
            "/openapi/v2" => openapi::v2(inner, ctx),
            "/openapi/v3" => openapi::index(inner, ctx),
            p if p.starts_with("/openapi/v3/") => openapi::v3(inner, ctx, &p["/openapi/v3/".len()..]),
            p => health::page(inner, ctx, p).await,
        },
    };
    match found {
        Ok(_) if !reading => Err(ApiError::method_not_allowed()),
        other => other,
    }
}

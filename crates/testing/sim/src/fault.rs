//! Fault injection between a controller and its API server.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tower::{BoxError, Service};

/// A body as it passes through the layer.
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// What happens to a request.
#[derive(Clone, Debug)]
pub enum Action {
    /// Rejected with this status and reason, without effect on the server.
    Fail(u16, &'static str),
    /// Delayed.
    Delay(Duration),
    /// Served, but the response is lost.
    LoseAnswer,
    /// The connection breaks before anything is sent.
    Disconnect,
    /// The process dies here: the request is served or not, no response arrives, and no further request is sent.
    Die { served: bool },
    /// The stream of a watch ends after this many events.
    CutAfter(usize),
    /// Every event of a watch is delivered twice.
    Duplicate,
    /// Every event of a watch is delayed.
    Lag(Duration),
    /// Accepted, and never answered.
    Hang,
    /// Answered with this body, for example a stale one.
    Answer(String),
}

/// How often a rule applies.
#[derive(Clone, Copy, Debug)]
pub enum FaultSchedule {
    Always,
    /// The nth matching request, from 1.
    Nth(u64),
    /// The first n matching requests.
    First(u64),
    /// With this probability.
    Chance(f64),
}

type Matches = Arc<dyn Fn(&Method, &str) -> bool + Send + Sync>;

/// A fault and the requests it is for.
#[derive(Clone)]
pub struct Rule {
    matches: Matches,
    when: FaultSchedule,
    action: Action,
    seen: u64,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rule").field("when", &self.when).field("action", &self.action).finish_non_exhaustive()
    }
}

impl Rule {
    /// `matches` gets the method and the path with its query.
    pub fn new(
        matches: impl Fn(&Method, &str) -> bool + Send + Sync + 'static,
        when: FaultSchedule,
        action: Action,
    ) -> Self {
        Rule { matches: Arc::new(matches), when, action, seen: 0 }
    }

    /// For all writes.
    pub fn writes(when: FaultSchedule, action: Action) -> Self {
        Rule::new(|method, _| *method != Method::GET, when, action)
    }

    /// For all watches.
    pub fn watches(when: FaultSchedule, action: Action) -> Self {
        Rule::new(|_, path| path.contains("watch=true"), when, action)
    }
}

/// The rules of a test cluster, and a record of its requests.
#[derive(Clone, Debug)]
pub struct Faults {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    rules: Vec<Rule>,
    random: StdRng,
    requests: Vec<String>,
    writers: Vec<(String, Option<String>)>,
    dead: bool,
}

impl Faults {
    pub fn new(seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed);
        Faults {
            state: Arc::new(Mutex::new(State {
                rules: Vec::new(),
                random,
                requests: Vec::new(),
                writers: Vec::new(),
                dead: false,
            })),
        }
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn add(&self, rule: Rule) {
        self.with(|s| s.rules.push(rule));
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.with(|s| s.rules.clear());
    }

    /// `METHOD path` of every request since the last call.
    pub fn take_requests(&self) -> Vec<String> {
        self.with(|s| std::mem::take(&mut s.requests))
    }

    /// `METHOD path` of every write since the last call, and the user it was made as where that is not the engine itself.
    pub fn take_writers(&self) -> Vec<(String, Option<String>)> {
        self.with(|s| std::mem::take(&mut s.writers))
    }

    /// Whether the process behind these faults has died.
    pub fn dead(&self) -> bool {
        self.with(|s| s.dead)
    }

    fn decide(&self, method: &Method, path: &str, user: Option<String>) -> Vec<Action> {
        self.with(|state| {
            state.requests.push(format!("{method} {path}"));
            if *method != Method::GET {
                state.writers.push((format!("{method} {path}"), user));
            }
            let mut actions = Vec::new();
            for rule in &mut state.rules {
                if !(rule.matches)(method, path) {
                    continue;
                }
                rule.seen += 1;
                let applies = match rule.when {
                    FaultSchedule::Always => true,
                    FaultSchedule::Nth(n) => rule.seen == n,
                    FaultSchedule::First(n) => rule.seen <= n,
                    FaultSchedule::Chance(chance) => state.random.random_bool(chance),
                };
                if applies {
                    state.dead |= matches!(rule.action, Action::Die { .. });
                    actions.push(rule.action.clone());
                }
            }
            actions
        })
    }

    /// Wraps a service with the faults.
    pub fn layer<S>(&self, inner: S) -> FaultLayer<S> {
        FaultLayer { inner, faults: self.clone() }
    }
}

/// A service with fault injection.
#[derive(Clone, Debug)]
pub struct FaultLayer<S> {
    inner: S,
    faults: Faults,
}

impl<S, B, R> Service<Request<B>> for FaultLayer<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if self.faults.dead() {
            return Box::pin(std::future::pending());
        }
        let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let user = request.headers().get("impersonate-user").and_then(|u| u.to_str().ok()).map(str::to_owned);
        let actions = self.faults.decide(request.method(), &path, user);
        // The one that was polled ready serves; a clone takes its place.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        Box::pin(async move {
            let (mut lose, mut die, mut cut, mut duplicate, mut lag) = (false, false, None, false, None);
            for action in actions {
                match action {
                    Action::Fail(code, reason) => return Ok(refusal(code, reason)),
                    Action::Delay(delay) => tokio::time::sleep(delay).await,
                    Action::Hang => return std::future::pending().await,
                    Action::Disconnect => return Err("connection reset by peer".into()),
                    Action::LoseAnswer => lose = true,
                    Action::Die { served: true } => die = true,
                    Action::Die { served: false } => return std::future::pending().await,
                    Action::CutAfter(n) => cut = Some(n),
                    Action::Duplicate => duplicate = true,
                    Action::Lag(late) => lag = Some(late),
                    Action::Answer(body) => return Ok(json(StatusCode::OK, body)),
                }
            }
            let answer = inner.call(request).await.map_err(Into::into)?;
            if die {
                return std::future::pending().await;
            }
            if lose {
                return Err("connection reset by peer".into());
            }
            Ok(answer.map(|body| {
                let body = body.map_err(Into::into).boxed_unsync();
                let body = if cut.is_some() || duplicate {
                    Events { inner: body, left: cut, duplicate, again: None }.boxed_unsync()
                } else {
                    body
                };
                match lag {
                    Some(late) => late_events(body, late),
                    None => body,
                }
            }))
        })
    }
}

fn refusal(code: u16, reason: &str) -> Response<Body> {
    let status = serde_json::json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason,
        "message": format!("injected: {reason}"), "metadata": {},
    });
    json(StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), status.to_string())
}

fn json(status: StatusCode, text: String) -> Response<Body> {
    let body = http_body_util::Full::new(Bytes::from(text));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}

/// A watch with delayed events.
fn late_events(mut body: Body, late: Duration) -> Body {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let reader = tokio::spawn(async move {
        while let Some(frame) = body.frame().await {
            if sender.send((tokio::time::Instant::now() + late, frame)).is_err() {
                return;
            }
        }
    });
    // The reader ends when the receiver is dropped.
    let reader = AbortOnDrop(reader);
    let frames = futures::stream::poll_fn(move |cx| receiver.poll_recv(cx)).then(|(at, frame)| async move {
        tokio::time::sleep_until(at).await;
        frame
    });
    let frames = frames.inspect(move |_| {
        let _ = &reader;
    });
    http_body_util::StreamBody::new(frames).boxed_unsync()
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A watch that loses or repeats events.
struct Events {
    inner: Body,
    left: Option<usize>,
    duplicate: bool,
    again: Option<Bytes>,
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(data) = self.again.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if self.left == Some(0) {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            if let Some(left) = &mut self.left {
                *left -= 1;
            }
            if self.duplicate {
                self.again = frame.data_ref().cloned();
            }
        }
        polled
    }
}

//! Notifications over HTTP, as Flux's controllers post them to the notification controller.

use std::time::Duration;

use tokio::sync::mpsc;

use super::{EventSink, Notification};
use crate::log::Log;

const TIMEOUT: Duration = Duration::from_secs(5);
const TRIES: u32 = 5;
const BACKLOG: usize = 1024;
/// Concurrent posts: one slow response must not delay the others.
const AT_ONCE: usize = 8;

/// Posts to a URL, with retries.
#[derive(Debug)]
pub struct HttpSink {
    queue: mpsc::Sender<Notification>,
    log: Log,
}

impl HttpSink {
    /// Starts the sender; it ends with the sink.
    pub fn start(address: &str, log: Log) -> Result<Self, fl_http::Error> {
        // An invalid URL is rejected here rather than at the first event.
        fl_http::Request::new(fl_http::Method::POST, address)?;
        let client = fl_http::Client::new(fl_http::Settings {
            timeout: TIMEOUT,
            ..fl_http::Settings::new(fl_http::Owner::engine())
        })?;
        let (queue, mut receiver) = mpsc::channel::<Notification>(BACKLOG);
        let (address, task_log) = (address.to_owned(), log.clone());
        tokio::spawn(async move {
            let permits = std::sync::Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
            while let Some(notification) = receiver.recv().await {
                let Ok(permit) = permits.clone().acquire_owned().await else { return };
                let (client, address, log) = (client.clone(), address.clone(), task_log.clone());
                tokio::spawn(async move {
                    post(&client, &address, &notification, &log).await;
                    drop(permit);
                });
            }
        });
        Ok(HttpSink { queue, log })
    }
}

impl EventSink for HttpSink {
    fn deliver(&self, notification: Notification) {
        if self.queue.try_send(notification).is_err() {
            self.log.error("too many notifications are waiting", "unable to record event");
        }
    }
}

async fn post(client: &fl_http::Client, address: &str, notification: &Notification, log: &Log) {
    let Ok(body) = serde_json::to_vec(notification) else { return };
    let mut wait = Duration::from_secs(1);
    let mut problem = String::new();
    for attempt in 0..TRIES {
        if attempt > 0 {
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(Duration::from_secs(30));
        }
        let request = fl_http::Request::new(fl_http::Method::POST, address)
            .and_then(|r| r.header(fl_http::header::CONTENT_TYPE, "application/json"))
            .map(|r| r.body(body.clone()));
        let sent = match request {
            Ok(request) => client.send(request).await,
            Err(error) => Err(error),
        };
        match sent {
            // 429: the receiver has seen this event before.
            Ok(answer) if answer.status().as_u16() < 500 => return,
            Ok(answer) => problem = format!("status {}", answer.status()),
            Err(error) => problem = error.to_string(),
        }
    }
    log.error(&problem, "unable to record event");
}

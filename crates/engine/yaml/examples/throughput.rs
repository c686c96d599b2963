//! Measures the throughput of parsing and printing manifests: `cargo run --release --example throughput -p
//! fl-yaml`.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use fl_yaml::{Dialect, JsonStyle, Options};

/// Ordinary manifests: mostly short plain scalars, some quoted ones and literal blocks.
fn manifests(count: usize) -> String {
    let mut text = String::new();
    for i in 0..count {
        let _ = write!(
            text,
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web-{i}\n  namespace: team-{t}\n  labels:\n    \
             app.kubernetes.io/name: web\n    app.kubernetes.io/instance: web-{i}\n  annotations:\n    note: \"built by \
             'hand' for team {t}\"\nspec:\n  replicas: 3 # as measured\n  selector:\n    matchLabels:\n      \
             app: web-{i}\n  template:\n    metadata:\n      labels:\n        app: web-{i}\n    spec:\n      \
             containers:\n      - name: app\n        image: registry.example.com/team-{t}/web:1.{i}.0\n        args: \
             [\"--port=8080\", '--level', info]\n        ports:\n        - containerPort: 8080\n          name: http\n        \
             resources:\n          limits: {{cpu: 500m, memory: 256Mi}}\n          requests:\n            cpu: 10m\n        \
             env:\n        - name: MODE\n          value: production\n        - name: GREETING\n          value: hello \
             there, this is a value with several words in it\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \
             web-{i}\ndata:\n  run.sh: |\n    #!/bin/sh\n    set -eu\n    exec /app --config /etc/app/config.yaml\n  \
             level: \"info\"\n---\n",
            t = i % 10,
        );
    }
    text
}

fn measure(what: &str, bytes: usize, mut work: impl FnMut()) {
    let best = (0..7)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .min()
        .unwrap_or_default();
    println!("{what:<28} {:>7.1} MB/s", bytes as f64 / 1e6 / best.as_secs_f64());
}

fn main() {
    let text = match std::env::args().nth(1) {
        Some(path) => std::fs::read_to_string(path).expect("the file is readable"),
        None => manifests(3000),
    };
    let v3 = Options::v3();
    let documents = fl_yaml::parse_all(text.as_bytes(), &v3).expect("the text is YAML");
    println!("{:.1} MB, {} documents", text.len() as f64 / 1e6, documents.len());
    measure("parse and drop", text.len(), || drop(black_box(fl_yaml::parse_all(text.as_bytes(), &v3))));
    measure("clone and drop", text.len(), || drop(black_box(documents.clone())));
    let mut out = String::new();
    measure("write as sigs yaml", text.len(), || {
        out.clear();
        for document in &documents {
            fl_yaml::write_sigs_yaml(&mut out, document, Dialect::V3).expect("manifests can be written");
        }
    });
    measure("write as JSON", text.len(), || {
        out.clear();
        for document in &documents {
            fl_yaml::write_json(&mut out, document, Dialect::V3, JsonStyle::GO)
                .expect("manifests can be written");
        }
    });
    let json: Vec<String> = documents
        .iter()
        .map(|d| fl_yaml::to_json(d, Dialect::V3, JsonStyle::GO).expect("manifests can be written"))
        .collect();
    let size = json.iter().map(String::len).sum();
    measure("parse JSON (of JSON bytes)", size, || {
        for text in &json {
            let _ = black_box(fl_yaml::from_json(text));
        }
    });
}

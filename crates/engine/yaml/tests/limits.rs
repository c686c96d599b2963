//! Malicious and invalid texts (threats B01 to B04): rejected quickly, with a position, without a crash.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::fmt::Write as _;
use std::time::Instant;

use fl_yaml::{Dialect, Error, Options, parse_all, parse_first, to_sigs_yaml};

fn rejected(bytes: &[u8]) -> Error {
    let mut last = None;
    for options in [Options::v3(), Options::sigs(), Options::sigs_strict()] {
        let error = parse_all(bytes, &options).unwrap_err();
        assert!(error.line > 0 && error.column > 0, "{error:?} has no place");
        last = Some(error);
    }
    last.unwrap()
}

#[test]
fn alias_bomb_is_rejected_early() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for i in 1..30 {
        let _ = write!(bomb, "a{i}: &a{i} [");
        let _ = write!(bomb, "{}", vec![format!("*a{}", i - 1); 9].join(", "));
        bomb.push_str("]\n");
    }
    let start = Instant::now();
    let error = rejected(bomb.as_bytes());
    assert_eq!(error.message, "document contains excessive aliasing");
    assert!(start.elapsed().as_millis() < 1000, "took {:?}", start.elapsed());
    // Some aliases are allowed.
    let fine = format!("a: &a {{k: v}}\nb: [{}]\n", vec!["*a"; 30].join(", "));
    assert!(parse_all(fine.as_bytes(), &Options::v3()).is_ok());
    assert_eq!(rejected(b"a: &a [b, *a]\n").message, "anchor 'a' value contains itself");
    assert_eq!(rejected(b"a: *b\n").message, "unknown anchor 'b' referenced");
}

#[test]
fn deep_nesting_is_rejected() {
    let n = 100_000;
    let deep_block: String = (0..2000).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
    for text in ["[".repeat(n), "{a: ".repeat(n), "- ".repeat(n), "? ".repeat(n), deep_block] {
        assert!(rejected(text.as_bytes()).message.contains("max depth"), "{}", &text[..20]);
    }
    assert!(fl_yaml::from_json(&"[".repeat(n)).unwrap_err().message.contains("max depth"));
}

#[test]
fn deepest_tree_fits_a_small_stack() {
    let work = || {
        for text in [format!("{}{}", "[".repeat(900), "]".repeat(900)), "- ".repeat(900) + "x"] {
            let node = parse_first(text.as_bytes(), &Options::v3()).unwrap().unwrap();
            let copy = node.clone();
            assert_eq!(copy, node);
            assert!(!to_sigs_yaml(&copy, Dialect::V3).unwrap().is_empty());
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn invalid_bytes_are_rejected_with_their_position() {
    for (bytes, line, column, message) in [
        (&b"a: b\nc: \xff\n"[..], 2, 4, "invalid leading UTF-8 octet"),
        (b"a: \xc3(", 1, 4, "invalid trailing UTF-8 octet"),
        (b"\xe6\x97\xa5: \xe6\x97", 1, 4, "incomplete UTF-8 octet sequence"),
        (b"a: b\x00\n", 1, 5, "control characters are not allowed"),
        (b"a: b\n\n  \x07\n", 3, 3, "control characters are not allowed"),
        (b"a: \xed\xa0\x80\n", 1, 4, "invalid Unicode character"),
    ] {
        let error = rejected(bytes);
        assert_eq!((error.line, error.column, error.message.as_str()), (line, column, message), "{bytes:?}");
    }
}

#[test]
fn encodings_and_line_ends_are_equivalent() {
    let text = "a: 1\nb: [x, 'y']\nc: |\n  d\n  e\n";
    let want = parse_all(text.as_bytes(), &Options::v3()).unwrap();
    let utf16 = |unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        ("\u{feff}".to_owned() + text).encode_utf16().flat_map(unit).collect()
    };
    let variants = [
        text.replace('\n', "\r\n").into_bytes(),
        text.replace('\n', "\r").into_bytes(),
        format!("\u{feff}{text}").into_bytes(),
        utf16(u16::to_le_bytes),
        utf16(u16::to_be_bytes),
    ];
    for bytes in variants {
        assert_eq!(parse_all(&bytes, &Options::v3()).unwrap(), want, "{bytes:?}");
    }
}

#[test]
fn indentation_with_tabs_is_rejected() {
    let error = rejected(b"a:\n\tb: c\n");
    assert_eq!((error.line, error.column), (2, 1), "{error}");
    assert!(parse_all(b"a:\t1\nb: [1,\t2]\n", &Options::v3()).is_ok());
}

#[test]
fn large_documents_are_accepted() {
    let many = "a: 1\n---\n".repeat(100_000);
    assert_eq!(parse_all(many.as_bytes(), &Options::v3()).unwrap().len(), 100_001);
    let large = format!("a: \"{}\"\nb: c\n", "x".repeat(50 << 20));
    let node = parse_first(large.as_bytes(), &Options::sigs()).unwrap().unwrap();
    assert_eq!(node.get("a").unwrap().as_text().unwrap().len(), 50 << 20);
    assert_eq!(node.get("b").unwrap().line(), 2);
    let wide: String = (0..20_000).fold(String::new(), |mut s, i| {
        let _ = writeln!(s, "key-{i}: {i}");
        s
    });
    assert_eq!(
        parse_first(wide.as_bytes(), &Options::v3()).unwrap().unwrap().as_map().unwrap().len(),
        20_000
    );
}

#[test]
fn duplicates_are_rejected_or_the_last_one_wins() {
    let text = b"a: 1\nb: {c: 1, d: 2, c: 3}\n";
    let error = parse_all(text, &Options::v3()).unwrap_err();
    assert_eq!(
        (error.line, error.column, error.message.as_str()),
        (2, 17, "mapping key \"c\" already defined at line 2")
    );
    assert!(parse_all(text, &Options::sigs_strict()).is_err());
    let node = parse_first(text, &Options::sigs()).unwrap().unwrap();
    assert_eq!(node.at(&["b", "c"]).unwrap().as_text(), Some("3"));
}

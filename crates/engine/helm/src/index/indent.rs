//! Indents compact JSON as Go's `json.Indent` does.

/// Indents by two blanks per level; the first line is at `depth` levels already.
pub(super) fn indented(compact: &str, depth: usize) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let mut level = depth;
    let mut in_text = false;
    let mut escaped = false;
    let mut letters = compact.chars().peekable();
    let line = |out: &mut String, level: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", level));
    };
    while let Some(letter) = letters.next() {
        if in_text {
            out.push(letter);
            match letter {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match letter {
            '"' => {
                in_text = true;
                out.push(letter);
            }
            '{' | '[' => {
                out.push(letter);
                let end = if letter == '{' { '}' } else { ']' };
                if letters.peek() == Some(&end) {
                    letters.next();
                    out.push(end);
                } else {
                    level += 1;
                    line(&mut out, level);
                }
            }
            '}' | ']' => {
                level = level.saturating_sub(1);
                line(&mut out, level);
                out.push(letter);
            }
            ',' => {
                out.push(letter);
                line(&mut out, level);
            }
            ':' => out.push_str(": "),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn indentation_matches_go() {
        assert_eq!(
            indented(r#"{"a":[1,{}],"b":"x,{\"","c":[]}"#, 0),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"x,{\\\"\",\n  \"c\": []\n}"
        );
        assert_eq!(indented(r#"{"a":1}"#, 2), "{\n      \"a\": 1\n    }");
    }
}

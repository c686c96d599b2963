//! Formatting of values by kind and verb.

use super::{MAX_DEPTH, Printer};
use crate::object::Object;
use crate::value::{IntKind, Kind, List, Map, Value};

impl Printer<'_> {
    /// Formats one operand.
    pub(super) fn print_arg(&mut self, value: &Value, verb: char) {
        match (value, verb) {
            (Value::Nil, 'T' | 'v') => self.pad(b"<nil>"),
            (Value::Nil, _) => self.bad_verb(value, verb),
            (_, 'T') => self.fmt_s(value.type_name().as_bytes()),
            (_, 'p') => self.fmt_pointer(value, verb),
            // `%w` is only for errors, which templates do not have.
            (Value::List(_) | Value::Map(_) | Value::Object(_), 'w') => self.bad_verb(value, verb),
            _ => self.print_value(value, verb, 0),
        }
    }

    pub(super) fn bad_verb(&mut self, value: &Value, verb: char) {
        self.erroring = true;
        self.out.extend_from_slice(b"%!");
        crate::runes::push(self.out, verb);
        self.out.push(b'(');
        if matches!(value, Value::Nil) {
            self.out.extend_from_slice(b"<nil>");
        } else {
            self.out.extend_from_slice(value.type_name().as_bytes());
            self.out.push(b'=');
            self.print_value(value, 'v', 0);
        }
        self.out.push(b')');
        self.erroring = false;
    }

    fn print_value(&mut self, value: &Value, verb: char, depth: usize) {
        if self.stopped() {
            return;
        }
        if depth > MAX_DEPTH {
            self.trouble = Some("value is nested too deeply to print");
            return;
        }
        match value {
            Value::Nil if self.flags.sharp_v => self.out.extend_from_slice(b"interface {}(nil)"),
            Value::Nil => self.out.extend_from_slice(b"<nil>"),
            Value::Bool(b) => match verb {
                't' | 'v' => self.pad(if *b { b"true" } else { b"false" }),
                _ => self.bad_verb(value, verb),
            },
            Value::Int(kind, n) => self.print_int(value, *kind, *n, verb),
            Value::Float(x) => self.print_float(value, *x, verb),
            Value::Complex(re, im) => self.print_complex(value, *re, *im, verb),
            Value::Str(text) => self.print_string(value, text, verb),
            Value::Bytes(bytes) => self.print_bytes(bytes, verb, depth),
            Value::List(list) => self.print_list(list, list.ty().name(), verb, depth),
            Value::Map(map) => self.print_map(map, map.ty().name(), verb, depth),
            Value::Object(object) => self.print_object(value, object.as_ref(), verb, depth),
        }
    }

    fn print_int(&mut self, value: &Value, kind: IntKind, n: i64, verb: char) {
        let negative = kind.signed() && n < 0;
        let magnitude = if kind.signed() { n.unsigned_abs() } else { n as u64 };
        match verb {
            'v' if self.flags.sharp_v && !kind.signed() => self.fmt_0x(magnitude, true),
            'v' | 'd' => self.fmt_integer(magnitude, negative, 10, verb),
            'b' => self.fmt_integer(magnitude, negative, 2, verb),
            'o' | 'O' => self.fmt_integer(magnitude, negative, 8, verb),
            'x' | 'X' => self.fmt_integer(magnitude, negative, 16, verb),
            'c' => self.fmt_rune(n as u64),
            'q' => self.fmt_quoted_rune(n as u64),
            'U' => self.fmt_unicode(n as u64),
            _ => self.bad_verb(value, verb),
        }
    }

    fn print_float(&mut self, value: &Value, x: f64, verb: char) {
        match verb {
            'v' => self.fmt_float(x, b'g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => self.fmt_float(x, verb as u8, None),
            'f' | 'e' | 'E' => self.fmt_float(x, verb as u8, Some(6)),
            'F' => self.fmt_float(x, b'f', Some(6)),
            _ => self.bad_verb(value, verb),
        }
    }

    fn print_complex(&mut self, value: &Value, re: f64, im: f64, verb: char) {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            return self.bad_verb(value, verb);
        }
        let plus = self.flags.plus;
        self.out.push(b'(');
        self.print_float(&Value::Float(re), re, verb);
        self.flags.plus = true;
        self.print_float(&Value::Float(im), im, verb);
        self.out.extend_from_slice(b"i)");
        self.flags.plus = plus;
    }

    fn print_string(&mut self, value: &Value, text: &[u8], verb: char) {
        match verb {
            'v' if self.flags.sharp_v => self.fmt_q(text),
            'v' | 's' => self.fmt_s(text),
            'x' => self.fmt_hex(text, false),
            'X' => self.fmt_hex(text, true),
            'q' => self.fmt_q(text),
            _ => self.bad_verb(value, verb),
        }
    }

    fn print_bytes(&mut self, bytes: &[u8], verb: char, depth: usize) {
        match verb {
            's' => self.fmt_s(bytes),
            'x' => self.fmt_hex(bytes, false),
            'X' => self.fmt_hex(bytes, true),
            'q' => self.fmt_q(bytes),
            'v' if self.flags.sharp_v => {
                self.out.extend_from_slice(if depth == 0 { b"[]byte{" } else { b"[]uint8{" });
                for (i, b) in bytes.iter().enumerate() {
                    if i > 0 {
                        self.out.extend_from_slice(b", ");
                    }
                    self.fmt_0x(u64::from(*b), true);
                }
                self.out.push(b'}');
            }
            _ => {
                self.out.push(b'[');
                for (i, b) in bytes.iter().enumerate() {
                    if i > 0 {
                        self.out.push(b' ');
                    }
                    self.print_value(&Value::Int(IntKind::Uint8, i64::from(*b)), verb, depth + 1);
                }
                self.out.push(b']');
            }
        }
    }

    /// Opens a composite value: type and brace for `%#v`, the plain text otherwise. Returns false for nil,
    /// which is complete.
    fn open(&mut self, type_name: &str, plain: &[u8], nil: bool) -> bool {
        if !self.flags.sharp_v {
            self.out.extend_from_slice(plain);
            return true;
        }
        self.out.extend_from_slice(type_name.as_bytes());
        if nil {
            self.out.extend_from_slice(b"(nil)");
            return false;
        }
        self.out.push(b'{');
        true
    }

    fn close(&mut self, plain: u8) {
        self.out.push(if self.flags.sharp_v { b'}' } else { plain });
    }

    fn separate(&mut self, i: usize) {
        if i > 0 {
            self.out.extend_from_slice(if self.flags.sharp_v { b", " } else { b" " });
        }
    }

    fn print_list(&mut self, list: &List, type_name: &str, verb: char, depth: usize) {
        if !self.open(type_name, b"[", list.is_nil()) {
            return;
        }
        for (i, item) in list.items().iter().enumerate() {
            self.separate(i);
            self.print_value(item, verb, depth + 1);
        }
        self.close(b']');
    }

    fn print_map(&mut self, map: &Map, type_name: &str, verb: char, depth: usize) {
        if !self.open(type_name, b"map[", map.is_nil()) {
            return;
        }
        for (i, (key, item)) in map.borrow().iter().enumerate() {
            self.separate(i);
            self.print_string(&Value::Str(key.clone()), key, verb);
            self.out.push(b':');
            self.print_value(item, verb, depth + 1);
        }
        self.close(b']');
    }

    fn print_object(&mut self, value: &Value, object: &dyn Object, verb: char, depth: usize) {
        if !self.erroring
            && !self.flags.sharp_v
            && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q')
            && let Some(text) = object.string()
        {
            return self.print_string(value, &text, verb);
        }
        let name = object.type_name();
        match object.plain() {
            Some(Value::List(list)) => return self.print_list(&list, &name, verb, depth),
            Some(Value::Map(map)) => return self.print_map(&map, &name, verb, depth),
            Some(Value::Int(kind, n)) => return self.print_int(value, kind, n, verb),
            Some(Value::Str(text)) => return self.print_string(value, &text, verb),
            Some(Value::Float(x)) => return self.print_float(value, x, verb),
            Some(plain) => return self.print_value(&plain, verb, depth + 1),
            None => {}
        }
        if let Some(entries) = object.entries() {
            if self.open(&name, b"map[", object.is_nil()) {
                for (i, (key, item)) in entries.iter().enumerate() {
                    self.separate(i);
                    self.print_value(key, verb, depth + 1);
                    self.out.push(b':');
                    self.print_value(item, verb, depth + 1);
                }
                self.close(b']');
            }
            return;
        }
        if object.kind() == Kind::Pointer {
            if depth > 0 || object.is_nil() {
                return self.fmt_pointer(value, verb);
            }
            self.out.push(b'&');
        }
        self.print_struct(object, verb, depth);
    }

    pub(super) fn print_struct(&mut self, object: &dyn Object, verb: char, depth: usize) {
        if self.flags.sharp_v {
            let name = object.type_name();
            self.out.extend_from_slice(name.strip_prefix('*').unwrap_or(&name).as_bytes());
        }
        self.out.push(b'{');
        for (i, (name, field)) in object.fields().iter().enumerate() {
            self.separate(i);
            if self.flags.plus_v || self.flags.sharp_v {
                self.out.extend_from_slice(name.as_bytes());
                self.out.push(b':');
            }
            self.print_value(field, verb, depth + 1);
        }
        self.out.push(b'}');
    }

    /// Addresses are those of our handles, as opaque to a template as Go's.
    fn fmt_pointer(&mut self, value: &Value, verb: char) {
        let address = match value {
            Value::Map(map) if map.is_nil() => 0,
            Value::Map(map) => map.address() as u64,
            Value::List(list) if list.is_nil() => 0,
            Value::List(list) => list.address() as u64,
            Value::Bytes(bytes) => bytes.as_ptr() as u64,
            Value::Object(object) if object.is_nil() => 0,
            Value::Object(object) if object.kind() == Kind::Pointer => {
                std::rc::Rc::as_ptr(object).cast::<()>() as u64
            }
            _ => return self.bad_verb(value, verb),
        };
        match verb {
            'v' if address == 0 => self.pad(b"<nil>"),
            'v' | 'p' => self.fmt_0x(address, !self.flags.sharp),
            'b' => self.fmt_integer(address, false, 2, verb),
            'o' => self.fmt_integer(address, false, 8, verb),
            'd' => self.fmt_integer(address, false, 10, verb),
            'x' | 'X' => self.fmt_integer(address, false, 16, verb),
            _ => self.bad_verb(value, verb),
        }
    }
}

//! What the projections are tested against: JavaScript values, and the projections written over
//! them the slow and obvious way.
//!
//! `serde_json` cannot hold all that JavaScript can (lone surrogates, numbers past the double
//! range), so the values are our own. They share no code with the span scanner.

mod media;
pub(crate) mod records;
pub(crate) mod slim;
pub(crate) mod spelling;

/// A value as `JSON.parse` makes it. Strings are UTF-16; members are in enumeration order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Js {
    Null,
    Bool(bool),
    Number(f64),
    String(Vec<u16>),
    Array(Vec<Js>),
    Object(Vec<(Vec<u16>, Js)>),
}

pub(crate) fn utf16(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

impl From<&str> for Js {
    fn from(text: &str) -> Self {
        Self::String(utf16(text))
    }
}

impl Js {
    pub(crate) fn parse(text: &str) -> Self {
        let mut parser = Parser { units: utf16(text), at: 0 };
        parser.value()
    }

    /// The member of an object with this key.
    pub(crate) fn get(&self, key: &str) -> Option<&Js> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(name, _)| *name == utf16(key)).map(|(_, value)| value)
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        *self == Self::from(text)
    }

    /// Assigns a member, as `object[key] = value` does.
    pub(crate) fn set(&mut self, key: &[u16], value: Js) {
        let Self::Object(members) = self else { panic!("no object") };
        match members.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => members.push((key.to_vec(), value)),
        }
        members.sort_by_key(|(name, _)| array_index(name).map_or((1, 0), |index| (0, index)));
    }

    pub(crate) fn stringify(&self) -> String {
        match self {
            Self::Null => "null".into(),
            Self::Bool(value) => value.to_string(),
            Self::Number(number) => print_number(*number),
            Self::String(units) => quote(units),
            Self::Array(elements) => {
                format!("[{}]", elements.iter().map(Js::stringify).collect::<Vec<_>>().join(","))
            }
            Self::Object(members) => {
                let member =
                    |(key, value): &(Vec<u16>, Js)| format!("{}:{}", quote(key), value.stringify());
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            }
        }
    }
}

fn array_index(key: &[u16]) -> Option<u64> {
    let text = String::from_utf16(key).ok()?;
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text && number < (1 << 32) - 1).then_some(number)
}

/// `Number::toString` of the ECMAScript specification: the digits of the shortest decimal that
/// reads back as the number, and the place `point` of the decimal point among them.
fn print_number(number: f64) -> String {
    if !number.is_finite() {
        return "null".into();
    }
    if number == 0.0 {
        return "0".into();
    }
    let sign = if number < 0.0 { "-" } else { "" };
    let printed = format!("{:e}", number.abs());
    let (mantissa, exponent) = printed.split_once('e').unwrap();
    let digits = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap();
    let (count, point) = (i32::try_from(digits.len()).unwrap(), exponent + 1);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap());
    let split = |at: i32| digits.split_at(usize::try_from(at).unwrap());
    let body = if count <= point && point <= 21 {
        format!("{digits}{}", zeros(point - count))
    } else if 0 < point && point <= 21 {
        format!("{}.{}", split(point).0, split(point).1)
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let mark = if exponent < 0 { '-' } else { '+' };
        let fraction = if count == 1 { String::new() } else { format!(".{}", split(1).1) };
        format!("{}{fraction}e{mark}{}", split(1).0, exponent.abs())
    };
    format!("{sign}{body}")
}

fn quote(units: &[u16]) -> String {
    let escape = |unit: u32| format!("\\u{unit:04x}");
    let mut out = String::from("\"");
    for char in char::decode_utf16(units.iter().copied()) {
        match char {
            Ok('"') => out += "\\\"",
            Ok('\\') => out += "\\\\",
            Ok('\u{8}') => out += "\\b",
            Ok('\u{c}') => out += "\\f",
            Ok('\n') => out += "\\n",
            Ok('\r') => out += "\\r",
            Ok('\t') => out += "\\t",
            Ok(control) if control < ' ' => out.push_str(&escape(u32::from(control))),
            Ok(char) => out.push(char),
            Err(lone) => out.push_str(&escape(lone.unpaired_surrogate().into())),
        }
    }
    out + "\""
}

struct Parser {
    units: Vec<u16>,
    at: usize,
}

impl Parser {
    fn peek(&mut self) -> char {
        while matches!(self.units.get(self.at), Some(0x20 | 0x09 | 0x0A | 0x0D)) {
            self.at += 1;
        }
        char::from_u32(self.units[self.at].into()).unwrap()
    }

    fn expect(&mut self, char: char) {
        assert_eq!(self.peek(), char);
        self.at += 1;
    }

    fn value(&mut self) -> Js {
        match self.peek() {
            '{' => self.object(),
            '[' => self.array(),
            '"' => Js::String(self.string()),
            _ => self.word(),
        }
    }

    fn object(&mut self) -> Js {
        let mut object = Js::Object(Vec::new());
        self.expect('{');
        while self.peek() != '}' {
            let key = self.string();
            self.expect(':');
            object.set(&key, self.value());
            if self.peek() == ',' {
                self.at += 1;
            }
        }
        self.at += 1;
        object
    }

    fn array(&mut self) -> Js {
        let mut elements = Vec::new();
        self.expect('[');
        while self.peek() != ']' {
            elements.push(self.value());
            if self.peek() == ',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Js::Array(elements)
    }

    fn string(&mut self) -> Vec<u16> {
        self.expect('"');
        let mut units = Vec::new();
        loop {
            let unit = self.units[self.at];
            self.at += 1;
            match char::from_u32(unit.into()) {
                Some('"') => return units,
                Some('\\') => units.push(self.escape()),
                _ => units.push(unit),
            }
        }
    }

    fn escape(&mut self) -> u16 {
        let escape = self.units[self.at];
        self.at += 1;
        match char::from_u32(escape.into()).unwrap() {
            'b' => 8,
            't' => 9,
            'n' => 10,
            'f' => 12,
            'r' => 13,
            'u' => {
                let digits = String::from_utf16(&self.units[self.at..self.at + 4]).unwrap();
                self.at += 4;
                u16::from_str_radix(&digits, 16).unwrap()
            }
            _ => escape,
        }
    }

    fn word(&mut self) -> Js {
        let is_word = |unit: &u16| {
            char::from_u32((*unit).into())
                .is_some_and(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        };
        let length = self.units[self.at..].iter().take_while(|unit| is_word(unit)).count();
        let word = String::from_utf16(&self.units[self.at..self.at + length]).unwrap();
        self.at += length;
        match word.as_str() {
            "null" => Js::Null,
            "true" => Js::Bool(true),
            "false" => Js::Bool(false),
            number => Js::Number(number.parse().unwrap()),
        }
    }
}

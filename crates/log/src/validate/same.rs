//! Whether two values are the same one, however they are spelled.

use std::collections::BTreeMap;

use crate::json::{Json, Kind, write_units};

/// Values nested deeper are the same only when they are spelled the same. Looking into a value goes
/// over its text once a level, which must not take forever for a payload of a million brackets.
const MAX_DEPTH: usize = 64;

/// Whether two objects have the same members, the one called `except` aside.
pub(super) fn but(one: Json<'_>, other: Json<'_>, except: &str) -> bool {
    let (Some(mut one), Some(mut other)) = (members(one), members(other)) else { return false };
    let mut literal = String::new();
    write_units(&mut literal, except.encode_utf16());
    one.remove(&literal);
    other.remove(&literal);
    let mut pairs = Vec::new();
    pair_members(&one, &other, 0, &mut pairs) && all_same(pairs)
}

/// Two values to compare, and how deep they are nested.
type Pair<'a> = (Json<'a>, Json<'a>, usize);

fn all_same(mut pairs: Vec<Pair<'_>>) -> bool {
    while let Some((one, other, depth)) = pairs.pop() {
        if one.text() == other.text() {
            continue;
        }
        if one.kind() != other.kind() || depth > MAX_DEPTH {
            return false;
        }
        let same = match one.kind() {
            Kind::Null | Kind::Bool => false,
            Kind::Number => one.as_f64() == other.as_f64(),
            Kind::String => one.as_str() == other.as_str(),
            Kind::Array => {
                let elements = |array: Json<'_>| array.elements().into_iter().flatten().count();
                let (ones, others) = (one.elements(), other.elements());
                let both = ones.into_iter().flatten().zip(others.into_iter().flatten());
                pairs.extend(both.map(|(one, other)| (one, other, depth + 1)));
                elements(one) == elements(other)
            }
            Kind::Object => match (members(one), members(other)) {
                (Some(one), Some(other)) => pair_members(&one, &other, depth, &mut pairs),
                _ => false,
            },
        };
        if !same {
            return false;
        }
    }
    true
}

/// The members by key, keys in the one spelling that `JSON.stringify` has for them.
fn members(object: Json<'_>) -> Option<BTreeMap<String, Json<'_>>> {
    let members = object.members()?.map(|member| {
        let mut key = String::new();
        write_units(&mut key, member.key.units());
        (key, member.value)
    });
    Some(members.collect())
}

/// Adds the values of members of the same name; `false` when there are others.
fn pair_members<'a>(
    one: &BTreeMap<String, Json<'a>>,
    other: &BTreeMap<String, Json<'a>>,
    depth: usize,
    pairs: &mut Vec<Pair<'a>>,
) -> bool {
    let both = one.values().zip(other.values());
    pairs.extend(both.map(|(one, other)| (*one, *other, depth + 1)));
    one.keys().eq(other.keys())
}

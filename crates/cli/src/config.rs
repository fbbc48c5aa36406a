//! Where settings come from: `turnkeep.toml`, then `TURNKEEP_*` variables, then flags.
//!
//! Each source is read into the same [`Settings`], all of whose members are optional; a later
//! source fills in over an earlier one. A key that no setting has is refused with the nearest one
//! that exists, since a setting that is silently ignored is worse than none.

use std::{
    env,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use turnkeep_host::Budgets;

use crate::{args::Global, failure::Failure, store::Spec};

/// What can be set, by any source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Where the sessions are.
    pub(crate) store: Option<String>,
    /// The encoding of a new store: `zstd` or `none`.
    pub(crate) compression: Option<String>,
    /// The decompressed size in bytes at which a frame is refused.
    pub(crate) max_frame_bytes: Option<u64>,
    /// Event types to know besides the built-in ones.
    pub(crate) vocabulary: Option<Vec<String>>,
    /// The address to listen on.
    pub(crate) listen: Option<String>,
    /// The OpenCode server behind the host.
    pub(crate) upstream: Option<String>,
    /// The user name for it.
    pub(crate) upstream_username: Option<String>,
    /// A file whose first line is the password for it.
    pub(crate) upstream_password_file: Option<PathBuf>,
    /// Browser origins that may call besides our own.
    pub(crate) allow_origin: Option<Vec<String>>,
    /// How many messages to ask the upstream for at a time, 10 to 200.
    pub(crate) scan_limit: Option<u16>,
    /// The most events of a session that is read for the list, where they are counted; 0: none.
    pub(crate) cold_blank_probe_max_events: Option<u64>,
    /// The most bytes of a session that is read for the list, where events are not counted; 0:
    /// none.
    pub(crate) cold_blank_probe_max_bytes: Option<u64>,
    /// A file of the keys that continuations are signed with, one base64 key a line.
    pub(crate) continuation_key_file: Option<PathBuf>,
    /// How much a reconciling client is sent at a time, and in all.
    pub(crate) reconcile: ReconcileSettings,
    /// `text` or `json`.
    pub(crate) log_format: Option<String>,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub(crate) log_level: Option<String>,
    /// When an append is acknowledged: `append` or `flush`.
    pub(crate) durability: Option<String>,
    /// A file whose first line is the password of this host, or its argon2id hash.
    pub(crate) password_file: Option<PathBuf>,
    /// The file of API tokens.
    pub(crate) token_file: Option<PathBuf>,
    /// The PEM file of the certificate.
    pub(crate) tls_cert: Option<PathBuf>,
    /// The PEM file of its key.
    pub(crate) tls_key: Option<PathBuf>,
    /// Networks of reverse proxies that say where a request comes from.
    pub(crate) trusted_proxy: Option<Vec<String>>,
    /// The `.sqlite` file of the transcript cache.
    pub(crate) transcript_cache_path: Option<PathBuf>,
    /// How many bytes of events are kept for clients that come back.
    pub(crate) replay_buffer_bytes: Option<usize>,
    /// How many bytes of events may wait for one client.
    pub(crate) client_queue_bytes: Option<usize>,
    /// The directory of the images that logs refer to.
    pub(crate) attachments: Option<PathBuf>,
}

/// The members of the table `reconcile`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ReconcileSettings {
    /// Records of a page.
    pub(crate) page_records: Option<usize>,
    /// Bytes of a page's records.
    pub(crate) page_bytes: Option<usize>,
    /// Pages of a round.
    pub(crate) total_pages: Option<usize>,
    /// Bytes that a round goes through.
    pub(crate) total_bytes: Option<usize>,
}

/// How many messages the upstream can be asked for at a time.
pub(crate) const SCAN_LIMIT: RangeInclusive<usize> = 10..=200;

/// The keys of [`Settings`], in its order. A dot stands between a table and a member of it.
const KEYS: [&str; 29] = [
    "store",
    "compression",
    "max_frame_bytes",
    "vocabulary",
    "listen",
    "upstream",
    "upstream_username",
    "upstream_password_file",
    "allow_origin",
    "scan_limit",
    "cold_blank_probe_max_events",
    "cold_blank_probe_max_bytes",
    "continuation_key_file",
    "reconcile.page_records",
    "reconcile.page_bytes",
    "reconcile.total_pages",
    "reconcile.total_bytes",
    "log_format",
    "log_level",
    "durability",
    "password_file",
    "token_file",
    "tls_cert",
    "tls_key",
    "trusted_proxy",
    "transcript_cache_path",
    "replay_buffer_bytes",
    "client_queue_bytes",
    "attachments",
];

impl Settings {
    /// Reads the file and the environment, and lays the global flags over them.
    pub(crate) fn load(flags: &Global) -> Result<Self, Failure> {
        let file = match file(flags) {
            Some(path) => Self::from_file(&path)?,
            None => Self::default(),
        };
        let settings = file.overlaid(Self::from_environment(env::vars())?);
        Ok(settings.overlaid(Self {
            store: flags.store.clone(),
            compression: flags.compression.clone(),
            ..Self::default()
        }))
    }

    fn from_file(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
        let mut settings = Self::from_toml(&text)
            .and_then(Self::checked)
            .map_err(|problem| Failure::usage(format!("{}: {problem}", path.display())))?;
        if let (Some(store), Some(folder)) = (&mut settings.store, path.parent()) {
            *store = Spec::named_in(folder, store);
        }
        Ok(settings)
    }

    /// These settings, unless one has a value that it cannot have. Every command checks them all:
    /// a file that only some commands can work with is found out about too late.
    fn checked(self) -> Result<Self, String> {
        let set = self.reconcile;
        let numbers = [
            ("scan_limit", self.scan_limit.map(usize::from), SCAN_LIMIT),
            ("reconcile.page_records", set.page_records, Budgets::RECORDS),
            ("reconcile.page_bytes", set.page_bytes, Budgets::PAGE_BYTES),
            ("reconcile.total_pages", set.total_pages, Budgets::PAGES),
            ("reconcile.total_bytes", set.total_bytes, Budgets::TOTAL_BYTES),
        ];
        for (name, value, range) in numbers {
            if let Some(value) = value.filter(|value| !range.contains(value)) {
                return Err(format!("{name} is {} to {}, not {value}", range.start(), range.end()));
            }
        }
        if self.max_frame_bytes == Some(0) {
            return Err("max_frame_bytes is at least 1, not 0: nothing could be read".to_owned());
        }
        for (name, value, (one, other)) in [
            ("compression", &self.compression, ("zstd", "none")),
            ("durability", &self.durability, ("append", "flush")),
        ] {
            if let Some(value) = value.as_deref().filter(|value| ![one, other].contains(value)) {
                return Err(format!("{name} is `{one}` or `{other}`, not `{value}`"));
            }
        }
        Ok(self)
    }

    fn from_toml(text: &str) -> Result<Self, String> {
        let table: toml::Table = text.parse().map_err(|error| problem_of(text, &error))?;
        if let Some(wrong) = keys_of(&table).find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("unknown key `{wrong}`{}", nearest(&wrong)));
        }
        toml::from_str(text).map_err(|error| problem_of(text, &error))
    }

    /// Reads `TURNKEEP_<KEY>` variables; lists are separated by commas.
    fn from_environment(
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, Failure> {
        let mut table = toml::Table::new();
        for (name, value) in variables {
            let Some(key) = name.strip_prefix("TURNKEEP_").map(str::to_ascii_lowercase) else {
                continue;
            };
            let Some(key) = KEYS.into_iter().find(|known| known.replace('.', "_") == key) else {
                // Other programs may use the prefix too, so this is no error.
                eprintln!("turnkeep: {name} sets nothing{}", nearest_variable(&key));
                continue;
            };
            let value = match key {
                "max_frame_bytes"
                | "scan_limit"
                | "cold_blank_probe_max_events"
                | "cold_blank_probe_max_bytes"
                | "reconcile.page_records"
                | "reconcile.page_bytes"
                | "reconcile.total_pages"
                | "reconcile.total_bytes"
                | "replay_buffer_bytes"
                | "client_queue_bytes" => {
                    let number = value.trim().parse::<i64>().map_err(|_| {
                        Failure::usage(format!("{name} must be a whole number, not `{value}`"))
                    })?;
                    toml::Value::Integer(number)
                }
                "vocabulary" | "allow_origin" | "trusted_proxy" => {
                    let items = value.split(',').map(str::trim).filter(|item| !item.is_empty());
                    toml::Value::Array(items.map(Into::into).collect())
                }
                _ => toml::Value::String(value),
            };
            match key.split_once('.') {
                None => drop(table.insert(key.to_owned(), value)),
                Some((outer, inner)) => {
                    let members = table.entry(outer).or_insert_with(|| toml::Table::new().into());
                    if let Some(members) = members.as_table_mut() {
                        members.insert(inner.to_owned(), value);
                    }
                }
            }
        }
        let settings: Self = table.try_into().map_err(|error| {
            Failure::usage(format!("a TURNKEEP_* variable cannot be used: {error}"))
        })?;
        settings.checked().map_err(|problem| {
            let key = problem.split(' ').next().unwrap_or_default();
            Failure::usage(format!("{}: {problem}", variable_of(key)))
        })
    }

    /// These settings where `over` says nothing, `over` where it does.
    #[must_use]
    pub(crate) fn overlaid(self, over: Self) -> Self {
        Self {
            store: over.store.or(self.store),
            compression: over.compression.or(self.compression),
            max_frame_bytes: over.max_frame_bytes.or(self.max_frame_bytes),
            vocabulary: over.vocabulary.or(self.vocabulary),
            listen: over.listen.or(self.listen),
            upstream: over.upstream.or(self.upstream),
            upstream_username: over.upstream_username.or(self.upstream_username),
            upstream_password_file: over.upstream_password_file.or(self.upstream_password_file),
            allow_origin: over.allow_origin.or(self.allow_origin),
            scan_limit: over.scan_limit.or(self.scan_limit),
            cold_blank_probe_max_events: over
                .cold_blank_probe_max_events
                .or(self.cold_blank_probe_max_events),
            cold_blank_probe_max_bytes: over
                .cold_blank_probe_max_bytes
                .or(self.cold_blank_probe_max_bytes),
            continuation_key_file: over.continuation_key_file.or(self.continuation_key_file),
            reconcile: ReconcileSettings {
                page_records: over.reconcile.page_records.or(self.reconcile.page_records),
                page_bytes: over.reconcile.page_bytes.or(self.reconcile.page_bytes),
                total_pages: over.reconcile.total_pages.or(self.reconcile.total_pages),
                total_bytes: over.reconcile.total_bytes.or(self.reconcile.total_bytes),
            },
            log_format: over.log_format.or(self.log_format),
            log_level: over.log_level.or(self.log_level),
            durability: over.durability.or(self.durability),
            password_file: over.password_file.or(self.password_file),
            token_file: over.token_file.or(self.token_file),
            tls_cert: over.tls_cert.or(self.tls_cert),
            tls_key: over.tls_key.or(self.tls_key),
            trusted_proxy: over.trusted_proxy.or(self.trusted_proxy),
            transcript_cache_path: over.transcript_cache_path.or(self.transcript_cache_path),
            replay_buffer_bytes: over.replay_buffer_bytes.or(self.replay_buffer_bytes),
            client_queue_bytes: over.client_queue_bytes.or(self.client_queue_bytes),
            attachments: over.attachments.or(self.attachments),
        }
    }
}

/// The keys of a file, those of a table with the table's name before them.
fn keys_of(table: &toml::Table) -> impl Iterator<Item = String> + '_ {
    table.iter().flat_map(|(key, value)| match value.as_table() {
        // A list of tables or a single value is no table: what it should be is said elsewhere.
        Some(members) if KEYS.iter().any(|known| is_member(known, key)) => {
            members.keys().map(|member| format!("{key}.{member}")).collect()
        }
        _ if KEYS.iter().any(|known| is_member(known, key)) => Vec::new(),
        _ => vec![key.clone()],
    })
}

fn is_member(key: &str, table: &str) -> bool {
    key.split_once('.').is_some_and(|(outer, _)| outer == table)
}

/// What is wrong with a file, and in which line, in one sentence.
fn problem_of(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim().replace('\n', " ");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message,
    }
}

/// `; did you mean …?`, or which keys there are when none is near.
fn nearest(wrong: &str) -> String {
    let tables = KEYS.iter().filter_map(|key| key.split_once('.')).map(|(table, _)| table);
    match near(wrong, KEYS.into_iter().chain(tables)) {
        Some(key) => format!("; did you mean `{key}`?"),
        None => format!("; the keys are {}", KEYS.join(", ")),
    }
}

/// The same for a variable, by what stands behind the prefix.
fn nearest_variable(wrong: &str) -> String {
    match near(wrong, KEYS.into_iter()) {
        Some(key) => format!("; did you mean {}?", variable_of(key)),
        None => format!("; the variables are {}", KEYS.map(variable_of).join(", ")),
    }
}

/// The variable that sets a key.
fn variable_of(key: &str) -> String {
    format!("TURNKEEP_{}", key.replace('.', "_").to_ascii_uppercase())
}

fn near<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|key| (strsim::jaro_winkler(wrong, key), key));
    let (score, key) = scored.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (score > 0.75).then_some(key)
}

/// The configuration file to read: the one that was named, else the default one if it exists.
pub(crate) fn file(flags: &Global) -> Option<PathBuf> {
    flags.config.clone().or_else(|| default_file().filter(|path| path.exists()))
}

fn default_file() -> Option<PathBuf> {
    let base = absolute(env::var_os("XDG_CONFIG_HOME")).or_else(|| home(".config"))?;
    Some(base.join("turnkeep").join("turnkeep.toml"))
}

/// The store when none is named.
pub(crate) fn default_store() -> Option<PathBuf> {
    let base = absolute(env::var_os("XDG_DATA_HOME")).or_else(|| home(".local/share"))?;
    Some(base.join("turnkeep").join("sessions"))
}

/// The file of API tokens when none is named.
pub(crate) fn default_token_file() -> Option<PathBuf> {
    let base = absolute(env::var_os("XDG_DATA_HOME")).or_else(|| home(".local/share"))?;
    Some(base.join("turnkeep").join("tokens.json"))
}

/// The XDG rules: a relative path there is to be ignored.
fn absolute(value: Option<std::ffi::OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

/// A path below the home directory.
pub(crate) fn home(below: &str) -> Option<PathBuf> {
    absolute(env::var_os("HOME")).map(|home| home.join(below))
}

#[cfg(test)]
mod tests {
    use super::{KEYS, ReconcileSettings, Settings};

    #[test]
    fn a_wrong_key_names_the_nearest_right_one() {
        let problem = Settings::from_toml("upstraem = \"x\"").unwrap_err();
        assert_eq!(problem, "unknown key `upstraem`; did you mean `upstream`?");
        let problem = Settings::from_toml("zzz = 1").unwrap_err();
        assert!(problem.starts_with("unknown key `zzz`; the keys are store, "), "{problem}");
    }

    #[test]
    fn a_wrong_value_is_refused() {
        assert!(Settings::from_toml("listen = 7420").unwrap_err().contains("expected a string"));
        let problem = Settings::from_toml("store = \"a\"\nlisten = ").unwrap_err();
        assert!(problem.starts_with("line 2: ") && !problem.contains('\n'), "{problem}");
        let bad = [("TURNKEEP_SCAN_LIMIT".to_owned(), "many".to_owned())];
        assert!(Settings::from_environment(bad.into_iter()).is_err());
    }

    #[test]
    fn variables_fill_in_over_the_file_and_flags_over_both() {
        let file = Settings::from_toml("store = \"/a\"\nlisten = \"1.2.3.4:5\"").unwrap();
        let variables = [
            ("TURNKEEP_STORE", "/b"),
            ("TURNKEEP_VOCABULARY", "acme/one, acme/two,"),
            ("TURNKEEP_SCAN_LIMIT", "50"),
            ("TURNKEEP_COLD_BLANK_PROBE_MAX_EVENTS", "0"),
            ("PATH", "/bin"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = file.overlaid(Settings::from_environment(variables.into_iter()).unwrap());
        assert_eq!(settings.store.as_deref(), Some("/b"));
        assert_eq!(settings.listen.as_deref(), Some("1.2.3.4:5"));
        assert_eq!(settings.scan_limit, Some(50));
        assert_eq!(settings.cold_blank_probe_max_events, Some(0));
        assert_eq!(settings.cold_blank_probe_max_bytes, None);
        assert_eq!(settings.vocabulary.unwrap(), ["acme/one", "acme/two"]);
    }

    #[test]
    fn a_table_is_filled_in_member_by_member() {
        let file =
            Settings::from_toml("[reconcile]\npage_records = 50\ntotal_pages = 9\n").unwrap();
        let variables = [
            ("TURNKEEP_RECONCILE_PAGE_RECORDS", "60"),
            ("TURNKEEP_RECONCILE_TOTAL_BYTES", "4096"),
            ("TURNKEEP_CONTINUATION_KEY_FILE", "/keys"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = file.overlaid(Settings::from_environment(variables.into_iter()).unwrap());
        let expected = ReconcileSettings {
            page_records: Some(60),
            page_bytes: None,
            total_pages: Some(9),
            total_bytes: Some(4096),
        };
        assert_eq!(settings.reconcile, expected);
        assert_eq!(settings.continuation_key_file, Some("/keys".into()));

        let problem = Settings::from_toml("[reconcile]\npage_record = 1").unwrap_err();
        let expected =
            "unknown key `reconcile.page_record`; did you mean `reconcile.page_records`?";
        assert_eq!(problem, expected);
        assert!(Settings::from_toml("reconcile = 1").unwrap_err().starts_with("line 1: "));
    }

    #[test]
    fn the_list_of_keys_is_complete() {
        let all = "store='a'\ncompression='a'\nmax_frame_bytes=1\nvocabulary=[]\nlisten='a'\n\
                   upstream='a'\nupstream_username='a'\nupstream_password_file='a'\n\
                   allow_origin=[]\nscan_limit=1\n\
                   cold_blank_probe_max_events=1\ncold_blank_probe_max_bytes=1\ncontinuation_key_file='a'\n\
                   reconcile.page_records=1\nreconcile.page_bytes=1\n\
                   reconcile.total_pages=1\nreconcile.total_bytes=1\n\
                   log_format='a'\nlog_level='a'\ndurability='a'\n\
                   password_file='a'\ntoken_file='a'\ntls_cert='a'\ntls_key='a'\n\
                   trusted_proxy=[]\ntranscript_cache_path='a'\nreplay_buffer_bytes=1\n\
                   client_queue_bytes=1\nattachments='a'\n";
        assert!(Settings::from_toml(all).is_ok());
        assert_eq!(all.lines().count(), KEYS.len());
    }
}

//! What a tool reports beside its output: child sessions and the files it changed.

use turnkeep_log::json::{Json, Kind, Walk};

use super::{
    counts::{CountFields, Counts},
    input::MAX_UNITS,
    text::Trimmed,
};
use crate::object::ObjectWriter;

/// The ids of the session a tool started, in its two spellings.
#[derive(Clone, Copy, Default)]
pub(super) struct ChildSession<'a> {
    pub(super) session_id: Option<Json<'a>>,
    pub(super) session_id_upper: Option<Json<'a>>,
}

impl<'a> ChildSession<'a> {
    /// Where the value of a key that names a session belongs.
    pub(super) fn slot(&mut self, key: &str) -> Option<&mut Option<Json<'a>>> {
        Some(match key {
            "sessionId" => &mut self.session_id,
            "sessionID" => &mut self.session_id_upper,
            _ => return None,
        })
    }

    /// Writes `sessionId`, and `sessionID` when it names another one.
    pub(super) fn write(&self, object: &mut ObjectWriter<'_>) {
        let first = Trimmed::of(self.session_id);
        let second = Trimmed::of(self.session_id_upper).filter(|id| Some(id) != first.as_ref());
        for (key, id) in [("sessionId", first), ("sessionID", second)] {
            if let Some(id) = id {
                id.write(object.key(key));
            }
        }
    }
}

/// What of a tool's metadata matters.
#[derive(Default)]
pub(super) struct ToolMetadata<'a> {
    child: ChildSession<'a>,
    files: Files,
    filediff: Option<ChangedFile<'a>>,
    counts: CountFields<'a>,
    name: Option<Json<'a>>,
}

impl<'a> ToolMetadata<'a> {
    /// Walks over the value of `metadata`.
    pub(super) fn read(walk: &mut Walk<'a>) -> Self {
        let mut metadata = Self::default();
        if walk.kind() != Kind::Object {
            walk.value();
            return metadata;
        }
        walk.enter();
        while let Some(key) = walk.next_key() {
            let key = key.decode_lossy();
            let slot = match &*key {
                "files" => {
                    metadata.files = Files::read(walk);
                    continue;
                }
                "filediff" => {
                    metadata.filediff = ChangedFile::read(walk);
                    continue;
                }
                "name" => Some(&mut metadata.name),
                key => metadata.child.slot(key).or_else(|| metadata.counts.slot(key)),
            };
            let value = walk.value();
            if let Some(slot) = slot {
                *slot = Some(value);
            }
        }
        metadata
    }

    /// Writes the child session, the changed files, their counts and the name.
    ///
    /// The counts are those stated here or counted from the patch here; when neither is known,
    /// the sums over the files; what is unknown even then, the one of the single file.
    pub(super) fn write(&self, object: &mut ObjectWriter<'_>) {
        self.child.write(object);

        if !self.files.text.is_empty() {
            let out = object.key("files");
            out.push('[');
            out.push_str(&self.files.text);
            out.push(']');
        }

        let mut single = Counts::default();
        if let Some(filediff) = &self.filediff {
            let named = filediff.file.filter(|file| file.as_str().is_some());
            let entry = Entry::of(filediff, named.or(filediff.file_path));
            if !entry.is_empty() {
                let mut file = ObjectWriter::open(object.key("filediff"));
                file.copy("file", named);
                entry.write(&mut file);
                file.close();
            }
            single = entry.counts;
        }

        let counts = self.counts.counts();
        let counts = if counts.is_unknown() { self.files.sums } else { counts };
        counts.or(single).write(object);

        if let Some(name) = Trimmed::cut(self.name, MAX_UNITS) {
            name.write(object.key("name"));
        }
    }
}

/// The changed files that are known by a path or by counts.
#[derive(Default)]
struct Files {
    /// As they are written, between the brackets: there may be many, and this is the least of
    /// them.
    text: String,
    sums: Counts,
}

impl Files {
    /// Walks over the value of `files`; only an array holds any.
    fn read(walk: &mut Walk<'_>) -> Self {
        let mut files = Self::default();
        if walk.kind() != Kind::Array {
            walk.value();
            return files;
        }
        walk.enter();
        while walk.next_element() {
            let Some(file) = ChangedFile::read(walk) else { continue };
            let entry = Entry::of(&file, file.file_path);
            if entry.is_empty() {
                continue;
            }
            if !files.text.is_empty() {
                files.text.push(',');
            }
            let mut object = ObjectWriter::open(&mut files.text);
            entry.write(&mut object);
            object.close();
            files.sums.add(entry.counts);
        }
        files
    }
}

/// A changed file as it is stated.
#[derive(Clone, Copy, Default)]
struct ChangedFile<'a> {
    file: Option<Json<'a>>,
    relative_path: Option<Json<'a>>,
    file_path: Option<Json<'a>>,
    path: Option<Json<'a>>,
    counts: CountFields<'a>,
}

impl<'a> ChangedFile<'a> {
    /// Walks over a value; only an object states a file.
    fn read(walk: &mut Walk<'a>) -> Option<Self> {
        if walk.kind() != Kind::Object {
            walk.value();
            return None;
        }
        let mut file = Self::default();
        walk.enter();
        while let Some(key) = walk.next_key() {
            let value = walk.value();
            let slot = match &*key.decode_lossy() {
                "file" => &mut file.file,
                "relativePath" => &mut file.relative_path,
                "filePath" => &mut file.file_path,
                "path" => &mut file.path,
                key => match file.counts.slot(key) {
                    Some(slot) => slot,
                    None => continue,
                },
            };
            *slot = Some(value);
        }
        Some(file)
    }
}

/// A changed file as it is written.
struct Entry<'a> {
    relative_path: Option<Trimmed<'a>>,
    file_path: Option<Trimmed<'a>>,
    /// Only when there is no other path.
    path: Option<Trimmed<'a>>,
    counts: Counts,
}

impl<'a> Entry<'a> {
    fn of(file: &ChangedFile<'a>, file_path: Option<Json<'a>>) -> Self {
        let relative_path = Trimmed::of(file.relative_path);
        let file_path = Trimmed::of(file_path);
        let is_named = relative_path.is_some() || file_path.is_some();
        let path = if is_named { None } else { Trimmed::of(file.path) };
        Self { relative_path, file_path, path, counts: file.counts.counts() }
    }

    fn is_empty(&self) -> bool {
        self.relative_path.is_none()
            && self.file_path.is_none()
            && self.path.is_none()
            && self.counts.is_unknown()
    }

    fn write(&self, object: &mut ObjectWriter<'_>) {
        let paths = [
            ("relativePath", &self.relative_path),
            ("filePath", &self.file_path),
            ("path", &self.path),
        ];
        for (key, path) in paths {
            if let Some(path) = path {
                path.write(object.key(key));
            }
        }
        self.counts.write(object);
    }
}

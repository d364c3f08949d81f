//! Files, and what they include, in the order in which they are laid.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Error, Read as _};
use std::path::{Path, PathBuf};

use crossover_core::policy::Layer;
use crossover_core::registry::Registry;

use crate::diagnostic::{Code, Diagnostic, Source};
use crate::file::{Document, Include, Standing};
use crate::shipped::{self, Shipped};
use crate::sources::PolicyError;
use crate::suggest;

/// A device file has no end, and is no policy.
const LONGEST: u64 = 64 << 20; // size: far beyond any policy

/// A document, in its place in the stack.
#[derive(Debug)]
pub(crate) struct Laid {
    pub(crate) standing: Standing,
    pub(crate) source: Source,
    pub(crate) document: Document,
}

/// Where a policy is.
#[derive(Clone, Debug)]
pub(crate) enum Location {
    File(PathBuf),
    Shipped(&'static Shipped),
    /// In the program itself, and what it is called.
    Text {
        name: String,
        text: String,
    },
}

/// Reads files one after another, weakest first.
pub(crate) struct Loader<'r> {
    registry: &'r Registry,
    pub(crate) laid: Vec<Laid>,
    /// All mistakes in all files.
    pub(crate) problems: Vec<Diagnostic>,
    /// What is laid already, by layer, and where in `laid` it is last: a file that several include is
    /// laid once, beneath them all.
    seen: HashMap<(Layer, PathBuf), usize>,
}

/// A file whose includes are being read.
struct Reading {
    identity: PathBuf,
    name: String,
}

impl<'r> Loader<'r> {
    pub(crate) fn new(registry: &'r Registry) -> Self {
        let (laid, problems, seen) = (Vec::new(), Vec::new(), HashMap::new());
        Loader { registry, laid, problems, seen }
    }

    /// Lays a file above what it includes, and above all that is laid, even where an earlier file
    /// included it: whoever names a file after others wants it to be stronger than they are.
    pub(crate) fn lay(&mut self, layer: Layer, location: &Location) -> Result<(), PolicyError> {
        let source = location
            .read()
            .map_err(|error| PolicyError::Unreadable { path: location.identity(), error })?;
        match self.seen.get(&(layer, location.identity())) {
            None => self.lay_source(layer, location, source, false, &mut Vec::new()),
            Some(below) => self.lay_again(*below, location),
        }
        Ok(())
    }

    /// Lays what is laid already, on top. What lies over the lower copy may rest on it.
    fn lay_again(&mut self, below: usize, location: &Location) {
        let Laid { standing, source, document } = &mut self.laid[below];
        let standing = Standing { included: false, ..*standing };
        // Its tests are run once, and its mistakes are told already.
        document.expects.clear();
        let source = source.clone();
        let document = Document::parse(&source, standing, self.registry, &mut Vec::new());
        self.seen.insert((standing.layer, location.identity()), self.laid.len());
        self.laid.push(Laid { standing, source, document });
    }

    /// Lays the files `*.toml` of a folder, in the order of their names; nothing if there is no
    /// such folder.
    pub(crate) fn lay_folder(&mut self, layer: Layer, folder: &Path) -> Result<(), PolicyError> {
        let unreadable = |error| PolicyError::UnreadableFolder { path: folder.to_owned(), error };
        let entries = match std::fs::read_dir(folder) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(unreadable)?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(unreadable)?.path());
        }
        paths.retain(|path| is_policy(path));
        paths.sort();
        paths.into_iter().try_for_each(|path| self.lay(layer, &Location::File(path)))
    }

    fn lay_source(
        &mut self,
        layer: Layer,
        location: &Location,
        source: Source,
        included: bool,
        trail: &mut Vec<Reading>,
    ) {
        let identity = location.identity();
        let shipped = matches!(location, Location::Shipped(_));
        let standing = Standing { layer, shipped, included };
        let mut problems = Vec::new();
        let document = Document::parse(&source, standing, self.registry, &mut problems);
        trail.push(Reading { identity: identity.clone(), name: source.name.clone() });
        for include in &document.includes {
            if let Err((message, help)) = self.lay_include(layer, location, include, trail) {
                let span = include.span.clone();
                problems.push(source.diagnostic(Code::Unknown, span, message, help));
            }
        }
        trail.pop();
        problems.extend(self.incomplete_tables(&source, &document));
        problems.sort_by_key(|problem| (problem.line, problem.column));
        self.problems.extend(problems);
        self.seen.insert((layer, identity), self.laid.len());
        self.laid.push(Laid { standing, source, document });
    }

    /// The tables that have rows, and do not say how to read them. A lower table of the same name
    /// may, but a file is read without the others: what that one says is told.
    fn incomplete_tables(&self, source: &Source, document: &Document) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for table in document.tables() {
            let name = &table.name;
            for &key in &table.layout.lacks {
                let lower = self.laid.iter().rev().find_map(|laid| {
                    let table = laid.document.tables().find(|t| t.name.text == name.text)?;
                    let place = format!("{}:{}", laid.source.name, table.name.line);
                    Some((table.layout.get(key)?, place))
                });
                let help = match lower {
                    Some((written, place)) => format!(
                        "a row that is stated again needs the `key` and the `columns` of its table: \
                         write `{key} = {written}`, as in {place}"
                    ),
                    None if key == "key" => "write `key = [\"world\"]`".to_owned(),
                    None => "write `columns = [\"host/one_shot\", \"nccl\"]`".to_owned(),
                };
                let message = format!("table `{}` has rows, and no `{key}`", name.text);
                let span = name.span.clone();
                problems.push(source.diagnostic(Code::Unknown, span, message, Some(help)));
            }
        }
        problems
    }

    /// Lays what an entry of `include` names, or says why that cannot be done.
    fn lay_include(
        &mut self,
        layer: Layer,
        from: &Location,
        include: &Include,
        trail: &mut Vec<Reading>,
    ) -> Result<(), (String, Option<String>)> {
        let location = from.included(&include.path)?;
        let identity = location.identity();
        if let Some(at) = trail.iter().position(|reading| reading.identity == identity) {
            let names = trail[at..].iter().chain([&trail[at]]).map(|reading| &*reading.name);
            let cycle = names.collect::<Vec<_>>().join(" -> ");
            return Err((
                format!("the files include one another in a circle: {cycle}"),
                Some("take one of these entries out".to_owned()),
            ));
        }
        let source = location.read().map_err(|e| {
            let path = identity.display();
            (format!("the included file {path} cannot be read: {e}"), Some(RELATIVE.to_owned()))
        })?;
        if !self.seen.contains_key(&(layer, identity)) {
            self.lay_source(layer, &location, source, true, trail);
        }
        Ok(())
    }
}

const RELATIVE: &str = "a path is relative to the file that includes it; `shipped:ported/vllm.toml` \
                        names one that is compiled in";

impl Location {
    /// What a path of the settings names: a file, or `shipped:<path>`.
    pub(crate) fn of(path: &Path) -> Result<Location, PolicyError> {
        match path.to_str().and_then(|text| text.strip_prefix(shipped::PREFIX)) {
            None => Ok(Location::File(path.to_owned())),
            Some(name) => match shipped::named(name) {
                Some(shipped) => Ok(Location::Shipped(shipped)),
                None => Err(PolicyError::NotShipped {
                    name: name.to_owned(),
                    help: suggest::help(name, shipped::paths()),
                }),
            },
        }
    }

    /// What a file here includes by this path.
    fn included(&self, path: &str) -> Result<Location, (String, Option<String>)> {
        let (name, found) = match (path.strip_prefix(shipped::PREFIX), self) {
            (Some(name), _) => (name.to_owned(), shipped::named(name)),
            (None, Location::Shipped(shipped)) => shipped.sibling(path),
            (None, Location::File(file)) => {
                let folder = file.parent().unwrap_or(Path::new(""));
                return Ok(Location::File(folder.join(path)));
            }
            (None, Location::Text { .. }) => {
                let help = "name a file that is compiled in: `shipped:ported/vllm.toml`".to_owned();
                return Err(("a policy of the program lies in no folder".to_owned(), Some(help)));
            }
        };
        let help = || Some(suggest::help(&name, shipped::paths()));
        found
            .map(Location::Shipped)
            .ok_or_else(|| (format!("no policy `{name}` is compiled in"), help()))
    }

    fn read(&self) -> std::io::Result<Source> {
        match self {
            Location::Shipped(shipped) => Ok(shipped.source()),
            Location::Text { name, text } => Ok(Source { name: name.clone(), text: text.clone() }),
            Location::File(path) => {
                let mut text = String::new();
                let read = File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
                if read as u64 > LONGEST {
                    return Err(Error::other("it is longer than 64 MiB, and no policy is"));
                }
                Ok(Source { name: path.display().to_string(), text })
            }
        }
    }

    /// The same for every path to one file.
    fn identity(&self) -> PathBuf {
        match self {
            Location::Shipped(shipped) => format!("{}{}", shipped::PREFIX, shipped.path).into(),
            Location::Text { name, .. } => format!("the program's {name}").into(),
            Location::File(path) => std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
        }
    }
}

fn is_policy(path: &Path) -> bool {
    let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    path.extension() == Some(OsStr::new("toml")) && !is_hidden && !path.is_dir()
}

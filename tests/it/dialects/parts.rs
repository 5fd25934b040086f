//! The forms of the agents. Each part is played once and shared by all tests.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use super::play::{Line, Played, play};
use super::writers::{
    ActiveContextCode, ActiveContextDocument, BanjoCode, BanjoDocument, Can, ElephantCode, ElephantDocument,
    MODES, Official, OpenOxide, OxideForm, ScriptWriter, Version2, ZeptoClawCode, ZeptoClawDocument,
};

/// An agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum System {
    OpenOxide,
    /// The form that does not support forks.
    OpenOxideWithoutForks,
    Elephant,
    ZeptoClaw,
    /// Behind a gateway, which keeps sessions longer than a connection.
    ZeptoClawServed,
    ActiveContext,
    Banjo,
    Version1,
    Version2,
}

/// An agent in one of its forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    OpenOxide(OxideForm),
    ElephantDocument,
    ElephantCode,
    ZeptoClawDocument,
    ZeptoClawCode,
    ZeptoClawServedDocument,
    ZeptoClawServedCode,
    ActiveContextDocument,
    ActiveContextCode,
    BanjoDocument,
    BanjoCode,
    Version1,
    Version2,
    /// The official protocol, with the abilities of an agent.
    Twin(System),
}

/// A form over a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Part {
    pub form: Form,
    pub line: Line,
}

impl System {
    pub const ALL: [Self; 7] = [
        Self::Version1,
        Self::Version2,
        Self::OpenOxide,
        Self::Elephant,
        Self::ZeptoClaw,
        Self::ActiveContext,
        Self::Banjo,
    ];

    fn can(self) -> Can {
        match self {
            Self::OpenOxide => OpenOxide { form: OxideForm::Methods }.can(),
            Self::OpenOxideWithoutForks => OpenOxide { form: OxideForm::Unknown }.can(),
            Self::Elephant => ElephantDocument.can(),
            Self::ZeptoClaw => ZeptoClawDocument { is_served: false }.can(),
            Self::ZeptoClawServed => ZeptoClawDocument { is_served: true }.can(),
            Self::ActiveContext => ActiveContextDocument.can(),
            Self::Banjo => BanjoDocument.can(),
            Self::Version1 => Can { modes: MODES, models: true, ..Version2.can() },
            Self::Version2 => Version2.can(),
        }
    }
}

impl Form {
    /// The agent of the form.
    pub fn system(self) -> System {
        match self {
            Self::OpenOxide(OxideForm::Unknown) => System::OpenOxideWithoutForks,
            Self::OpenOxide(_) => System::OpenOxide,
            Self::ElephantDocument | Self::ElephantCode => System::Elephant,
            Self::ZeptoClawDocument | Self::ZeptoClawCode => System::ZeptoClaw,
            Self::ZeptoClawServedDocument | Self::ZeptoClawServedCode => System::ZeptoClawServed,
            Self::ActiveContextDocument | Self::ActiveContextCode => System::ActiveContext,
            Self::BanjoDocument | Self::BanjoCode => System::Banjo,
            Self::Version1 => System::Version1,
            Self::Version2 => System::Version2,
            Self::Twin(system) => system,
        }
    }

    /// The script writer of the form.
    pub fn writer(self) -> Box<dyn ScriptWriter> {
        match self {
            Self::OpenOxide(form) => Box::new(OpenOxide { form }),
            Self::ElephantDocument => Box::new(ElephantDocument),
            Self::ElephantCode => Box::new(ElephantCode),
            Self::ZeptoClawDocument => Box::new(ZeptoClawDocument { is_served: false }),
            Self::ZeptoClawCode => Box::new(ZeptoClawCode { is_served: false }),
            Self::ZeptoClawServedDocument => Box::new(ZeptoClawDocument { is_served: true }),
            Self::ZeptoClawServedCode => Box::new(ZeptoClawCode { is_served: true }),
            Self::ActiveContextDocument => Box::new(ActiveContextDocument),
            Self::ActiveContextCode => Box::new(ActiveContextCode { is_null: false }),
            Self::BanjoDocument => Box::new(BanjoDocument),
            Self::BanjoCode => Box::new(BanjoCode),
            Self::Version2 => Box::new(Version2),
            Self::Version1 | Self::Twin(_) => Box::new(Official { can: self.system().can() }),
        }
    }
}

type Results = Mutex<HashMap<Part, Arc<OnceLock<Arc<Played>>>>>;

/// The result of a part.
pub fn played(part: Part) -> Arc<Played> {
    static RESULTS: LazyLock<Results> = LazyLock::new(Results::default);
    // The official form is its own twin.
    let part = match part.form {
        Form::Version1 => Part { form: Form::Twin(System::Version1), ..part },
        _ => part,
    };
    let place = Arc::clone(RESULTS.lock().unwrap().entry(part).or_default());
    Arc::clone(place.get_or_init(|| Arc::new(play(part.form.writer().as_ref(), part.line))))
}

/// Removes the cause of a lost connection, which depends on the transport.
pub fn without_cause(summary: &str) -> String {
    let lines = summary.lines().map(|line| if line.starts_with("died: ") { "died" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

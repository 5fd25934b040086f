//! Themes: a style for each role. No colour is named anywhere else.
//!
//! Defines the roles, the active theme, and the set of themes (built-in or the user's). [`ColorSupport`] is
//! passed in. Loading never fails: invalid themes fall back to the dark theme, with a list of problems.

pub mod colour;
pub mod load;

pub use colour::{ColorSupport, nearest_ansi, reduce};
pub use load::ThemeSet;

use ratatui::style::{Color, Modifier, Style};

macro_rules! roles {
    ($($(#[$doc:meta])* $name:ident = $key:literal,)+) => {
        /// The purpose of a part of the screen; a theme has a style for each role.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Role {
            $($(#[$doc])* $name,)+
        }

        impl Role {
            /// All roles, in the order of their definition.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            pub fn key(self) -> &'static str {
                match self {
                    $(Self::$name => $key,)+
                }
            }
        }
    };
}

roles! {
    /// Regular text; its background is the screen's.
    Text = "text",
    TextDim = "text.dim",
    TextStrong = "text.strong",
    /// The accent colour: the user's bar, the focused element.
    Accent = "accent",
    /// The selected row of a list, and selected text.
    Selection = "selection",
    /// Characters that matched a filter or a search.
    Match = "match",
    Success = "success",
    /// Failed results, errors.
    Error = "error",
    Warning = "warning",
    Title = "title",
    Status = "status",
    KeyHint = "status.key",
    Rule = "rule",
    Composer = "composer",
    /// The background of the composer while it has the keys.
    ComposerSurface = "composer.surface",
    Placeholder = "composer.placeholder",
    User = "message.user",
    UserBar = "message.user.bar",
    Agent = "message.agent",
    Thought = "message.thought",
    /// Unknown items, shown as raw JSON.
    RawItem = "message.raw",
    ToolKind = "tool.kind",
    ToolTitle = "tool.title",
    Running = "tool.running",
    Heading = "md.heading",
    Emphasis = "md.emphasis",
    Strong = "md.strong",
    InlineCode = "md.code",
    /// Code blocks: the background, and code without highlighting.
    CodeBlock = "md.code.block",
    /// The language label of a code block.
    CodeLanguage = "md.code.language",
    Link = "md.link",
    Quote = "md.quote",
    ListMark = "md.list",
    TableBorder = "md.table.border",
    TableHead = "md.table.head",
    DiffPlus = "diff.plus",
    DiffMinus = "diff.minus",
    DiffPlusWord = "diff.plus.word",
    DiffMinusWord = "diff.minus.word",
    DiffContext = "diff.context",
    /// Line numbers and signs.
    DiffGutter = "diff.gutter",
    /// "12 unchanged lines", file headers.
    DiffMeta = "diff.meta",
    /// Command output without its own colour.
    Terminal = "terminal",
    DialogBorder = "modal.border",
    DialogTitle = "modal.title",
    /// A dialog's text; its background is the dialog's.
    Dialog = "modal",
    PlanPending = "plan.pending",
    PlanActive = "plan.active",
    PlanDone = "plan.done",
    ScrollTrack = "scroll.track",
    ScrollThumb = "scroll.thumb",
    SyntaxComment = "syntax.comment",
    SyntaxKeyword = "syntax.keyword",
    SyntaxString = "syntax.string",
    SyntaxConstant = "syntax.constant",
    SyntaxType = "syntax.type",
    SyntaxFunction = "syntax.function",
    SyntaxVariable = "syntax.variable",
    SyntaxPunctuation = "syntax.punctuation",
    SyntaxAttribute = "syntax.attribute",
}

/// A style for each role.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    pub name: String,
    pub is_dark: bool,
    styles: Vec<Style>,
}

impl Theme {
    /// A theme without colours, in which only modifiers distinguish roles. For `NO_COLOR` and terminals
    /// without colours.
    pub fn plain() -> Self {
        let styles = Role::ALL.iter().map(|role| Style::default().add_modifier(plain_modifier(*role)));
        Self { name: "plain".to_owned(), is_dark: true, styles: styles.collect() }
    }

    pub fn style(&self, role: Role) -> Style {
        self.styles.get(role as usize).copied().unwrap_or_default()
    }

    /// The background of the screen; the terminal's own if the theme has none.
    pub fn screen_bg(&self) -> Color {
        self.style(Role::Text).bg.unwrap_or(Color::Reset)
    }

    /// The background of the screen as RGB; `None` for the terminal's own.
    pub fn ground(&self) -> Option<[u8; 3]> {
        colour::rgb(self.screen_bg())
    }

    pub fn modal_bg(&self) -> Color {
        self.style(Role::Dialog).bg.unwrap_or_else(|| self.screen_bg())
    }
}

/// The modifier that distinguishes a role without colours.
fn plain_modifier(role: Role) -> Modifier {
    match role {
        Role::Selection => Modifier::REVERSED,
        Role::Match | Role::Link => Modifier::UNDERLINED,
        Role::TextStrong
        | Role::Heading
        | Role::Strong
        | Role::DialogTitle
        | Role::Error
        | Role::TableHead
        | Role::PlanActive
        | Role::User => Modifier::BOLD,
        Role::DiffPlusWord | Role::DiffMinusWord => Modifier::BOLD.union(Modifier::UNDERLINED),
        Role::Emphasis => Modifier::ITALIC,
        Role::TextDim
        | Role::Thought
        | Role::RawItem
        | Role::Placeholder
        | Role::Rule
        | Role::Status
        | Role::DiffGutter
        | Role::DiffMeta
        | Role::PlanDone
        | Role::Quote
        | Role::ScrollTrack
        | Role::CodeLanguage
        | Role::SyntaxComment => Modifier::DIM,
        _ => Modifier::empty(),
    }
}

#[cfg(test)]
mod tests;

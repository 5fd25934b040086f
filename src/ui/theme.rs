//! Themes: roles with a style each. No colour is named anywhere else.
//!
//! Duty: the roles, the theme in force, and the set of themes that can be chosen (built in or the user's).
//! Not its duty: finding out what the terminal can show; [`ColorSupport`] is given.
//! Data: TOML text comes in, a [`Theme`] and a list of problems in plain words leave. Loading never fails:
//! what cannot be read falls back to the dark theme and says so.

pub mod colour;
pub mod load;

pub use colour::{ColorSupport, reduce};
pub use load::ThemeSet;

use ratatui::style::{Color, Modifier, Style};

macro_rules! roles {
    ($($(#[$doc:meta])* $name:ident = $key:literal,)+) => {
        /// What a piece of the screen is; a theme gives each role a style.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Role {
            $($(#[$doc])* $name,)+
        }

        impl Role {
            /// All roles, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The role's name in a theme file.
            pub fn key(self) -> &'static str {
                match self {
                    $(Self::$name => $key,)+
                }
            }
        }
    };
}

roles! {
    /// Ordinary text on the screen's own background; its background is the screen's.
    Text = "text",
    /// Everything secondary.
    TextDim = "text.dim",
    /// Emphasised text, headings.
    TextStrong = "text.strong",
    /// The one accent: the user's bar, the focused thing.
    Accent = "accent",
    /// The marked row of a list, and selected text.
    Selection = "selection",
    /// Characters that matched a filter or a search.
    Match = "match",
    /// Good results.
    Success = "success",
    /// Bad results.
    Error = "error",
    /// Be aware.
    Warning = "warning",
    /// The title line.
    Title = "title",
    /// The status line.
    Status = "status",
    /// Names of keys in hints.
    KeyHint = "status.key",
    /// Thin rules between panels.
    Rule = "rule",
    /// The composer's text.
    Composer = "composer",
    /// The composer's hint while it is empty.
    Placeholder = "composer.placeholder",
    /// The text of the user's messages.
    User = "message.user",
    /// The bar beside the user's messages.
    UserBar = "message.user.bar",
    /// The agent's text.
    Agent = "message.agent",
    /// The agent's reasoning.
    Thought = "message.thought",
    /// Unknown items, as they came.
    RawItem = "message.raw",
    /// The word for a tool's kind.
    ToolKind = "tool.kind",
    /// A tool's title.
    ToolTitle = "tool.title",
    /// The mark of a running tool, and the spinner.
    Running = "tool.running",
    /// Headings in Markdown.
    Heading = "md.heading",
    /// Emphasis in Markdown.
    Emphasis = "md.emphasis",
    /// Strong text in Markdown.
    Strong = "md.strong",
    /// Code inside a line.
    InlineCode = "md.code",
    /// Blocks of code: the background, and code without a grammar.
    CodeBlock = "md.code.block",
    /// The language of a block of code.
    CodeLanguage = "md.code.language",
    /// Links.
    Link = "md.link",
    /// Quotes.
    Quote = "md.quote",
    /// Bullets and numbers.
    ListMark = "md.list",
    /// Borders of tables.
    TableBorder = "md.table.border",
    /// Heads of tables.
    TableHead = "md.table.head",
    /// Added lines.
    DiffPlus = "diff.plus",
    /// Removed lines.
    DiffMinus = "diff.minus",
    /// Words added within a line.
    DiffPlusWord = "diff.plus.word",
    /// Words removed within a line.
    DiffMinusWord = "diff.minus.word",
    /// Unchanged lines.
    DiffContext = "diff.context",
    /// Line numbers and marks.
    DiffGutter = "diff.gutter",
    /// "12 unchanged lines", file heads.
    DiffMeta = "diff.meta",
    /// Output of commands without a colour of its own.
    Terminal = "terminal",
    /// A dialog's border.
    ModalBorder = "modal.border",
    /// A dialog's heading.
    ModalTitle = "modal.title",
    /// A dialog's text; its background is the dialog's.
    Modal = "modal",
    /// Steps of a plan not begun.
    PlanPending = "plan.pending",
    /// The step of a plan that is being done.
    PlanActive = "plan.active",
    /// Steps of a plan that are done.
    PlanDone = "plan.done",
    /// The scroll bar's track.
    ScrollTrack = "scroll.track",
    /// The scroll bar's thumb.
    ScrollThumb = "scroll.thumb",
    /// Comments.
    SyntaxComment = "syntax.comment",
    /// Keywords.
    SyntaxKeyword = "syntax.keyword",
    /// Strings.
    SyntaxString = "syntax.string",
    /// Numbers and constants.
    SyntaxConstant = "syntax.constant",
    /// Types.
    SyntaxType = "syntax.type",
    /// Functions.
    SyntaxFunction = "syntax.function",
    /// Variables and parameters.
    SyntaxVariable = "syntax.variable",
    /// Operators and punctuation.
    SyntaxPunctuation = "syntax.punctuation",
    /// Attributes, tags, macros.
    SyntaxAttribute = "syntax.attribute",
}

/// A style for each role.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    /// Its name.
    pub name: String,
    /// Whether it is for a dark background.
    pub is_dark: bool,
    styles: Vec<Style>,
}

impl Theme {
    /// A theme without any colour: only modifiers tell roles apart. For `NO_COLOR` and terminals that are
    /// told to show none.
    pub fn plain() -> Self {
        let styles = Role::ALL.iter().map(|role| Style::default().add_modifier(plain_modifier(*role)));
        Self { name: "plain".to_owned(), is_dark: true, styles: styles.collect() }
    }

    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.styles.get(role as usize).copied().unwrap_or_default()
    }

    /// The background behind everything; the terminal's own in a theme without one.
    pub fn screen_bg(&self) -> Color {
        self.style(Role::Text).bg.unwrap_or(Color::Reset)
    }

    /// The tone of the background behind everything; `None`: the terminal's own.
    pub fn ground(&self) -> Option<[u8; 3]> {
        colour::rgb(self.screen_bg())
    }

    /// The background of dialogs.
    pub fn modal_bg(&self) -> Color {
        self.style(Role::Modal).bg.unwrap_or_else(|| self.screen_bg())
    }
}

/// What tells a role apart where there is no colour.
fn plain_modifier(role: Role) -> Modifier {
    match role {
        Role::Selection => Modifier::REVERSED,
        Role::Match | Role::Link => Modifier::UNDERLINED,
        Role::TextStrong
        | Role::Heading
        | Role::Strong
        | Role::ModalTitle
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

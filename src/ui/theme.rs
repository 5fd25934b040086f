//! Themes: a style for each role. No colour is named anywhere else.
//!
//! Defines the roles, the active theme, and the set of themes (built-in or the user's). [`ColorSupport`] is
//! passed in. Loading never fails: invalid themes fall back to the dark theme, with a list of problems.

pub mod colour;
pub mod load;

pub use colour::{ColorSupport, reduce, rgb};
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

            /// The name in theme files.
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
    /// Secondary text.
    TextDim = "text.dim",
    /// Emphasised text, headings.
    TextStrong = "text.strong",
    /// The accent colour: the user's bar, the focused element.
    Accent = "accent",
    /// The selected row of a list, and selected text.
    Selection = "selection",
    /// Characters that matched a filter or a search.
    Match = "match",
    /// Successful results.
    Success = "success",
    /// Failed results, errors.
    Error = "error",
    Warning = "warning",
    /// The title line.
    Title = "title",
    /// The status line.
    Status = "status",
    /// Names of keys in hints.
    KeyHint = "status.key",
    /// Rules between panels.
    Rule = "rule",
    /// The text in the composer.
    Composer = "composer",
    /// The background of the composer while it has the keys.
    ComposerSurface = "composer.surface",
    /// The placeholder of the empty composer.
    Placeholder = "composer.placeholder",
    /// The text of the user's messages.
    User = "message.user",
    /// The bar beside the user's messages.
    UserBar = "message.user.bar",
    /// The agent's text.
    Agent = "message.agent",
    /// The agent's reasoning.
    Thought = "message.thought",
    /// Unknown items, shown as raw JSON.
    RawItem = "message.raw",
    /// The label of a tool's kind.
    ToolKind = "tool.kind",
    /// A tool's title.
    ToolTitle = "tool.title",
    /// The symbol of a running tool, and the spinner.
    Running = "tool.running",
    /// Headings in Markdown.
    Heading = "md.heading",
    /// Emphasis in Markdown.
    Emphasis = "md.emphasis",
    /// Strong text in Markdown.
    Strong = "md.strong",
    /// Inline code.
    InlineCode = "md.code",
    /// Code blocks: the background, and code without highlighting.
    CodeBlock = "md.code.block",
    /// The language label of a code block.
    CodeLanguage = "md.code.language",
    /// Links.
    Link = "md.link",
    /// Quotes.
    Quote = "md.quote",
    /// Bullets and numbers.
    ListMark = "md.list",
    /// Borders of tables.
    TableBorder = "md.table.border",
    /// Headers of tables.
    TableHead = "md.table.head",
    /// Added lines.
    DiffPlus = "diff.plus",
    /// Removed lines.
    DiffMinus = "diff.minus",
    /// Words added in a line.
    DiffPlusWord = "diff.plus.word",
    /// Words removed in a line.
    DiffMinusWord = "diff.minus.word",
    /// Unchanged lines.
    DiffContext = "diff.context",
    /// Line numbers and signs.
    DiffGutter = "diff.gutter",
    /// "12 unchanged lines", file headers.
    DiffMeta = "diff.meta",
    /// Command output without its own colour.
    Terminal = "terminal",
    /// A dialog's border.
    ModalBorder = "modal.border",
    /// A dialog's heading.
    ModalTitle = "modal.title",
    /// A dialog's text; its background is the dialog's.
    Modal = "modal",
    /// Pending steps of a plan.
    PlanPending = "plan.pending",
    /// The active step of a plan.
    PlanActive = "plan.active",
    /// Completed steps of a plan.
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
    pub name: String,
    /// Whether it is for a dark background.
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

    /// The style of a role.
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

    /// The background of dialogs.
    pub fn modal_bg(&self) -> Color {
        self.style(Role::Modal).bg.unwrap_or_else(|| self.screen_bg())
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

//! The commands of normal and visual mode, and their grammar.

/// A command with its register and count.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    pub register: Option<char>,
    pub count: Option<usize>,
    pub verb: Verb,
}

/// What a command does.
#[derive(Debug, Clone, PartialEq)]
pub enum Verb {
    Move(Motion),
    Extend(Object),
    Operate(Operator, Span),
    Insert(Start),
    Overwrite,
    ReplaceWith(char),
    ToggleCase,
    Join(bool),
    /// Whether before the cursor.
    Put(bool),
    Undo,
    Redo,
    Repeat,
    /// Visual mode; whether by lines.
    Select(bool),
    Reselect,
    OtherEnd,
}

/// An operation on a range of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Delete,
    Change,
    Yank,
    Indent,
    Unindent,
    ToggleCase,
    Lower,
    Upper,
}

/// The text that an operator applies to.
#[derive(Debug, Clone, PartialEq)]
pub enum Span {
    Lines,
    Motion(Motion),
    Object(Object),
    /// The selected text; whether as lines.
    Selection(bool),
}

/// Where insert mode starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Here,
    After,
    FirstNonBlank,
    LineEnd,
    LastInsert,
    LineBelow,
    LineAbove,
}

/// A movement of the cursor.
#[derive(Debug, Clone, PartialEq)]
pub enum Motion {
    Left,
    Right,
    Down,
    Up,
    /// To the next start of a word. The flags of words: whether words are separated by blanks only.
    Word(bool),
    WordBack(bool),
    WordEnd(bool),
    WordEndBack(bool),
    LineStart,
    FirstNonblank,
    LineEnd,
    LastNonblank,
    /// To the first character of the line below, by count minus one lines.
    ThisLine,
    NextLine,
    PreviousLine,
    Column,
    FirstLine,
    LastLine,
    ParagraphForward,
    ParagraphBack,
    Find(Find),
    /// Repeats the last `Find`; whether in the other direction.
    FindAgain(bool),
    Match,
    Search {
        pattern: String,
        is_back: bool,
    },
    /// Repeats the last search; whether in the other direction.
    SearchAgain(bool),
    SearchWord {
        is_back: bool,
        is_whole: bool,
    },
}

/// A search for a character in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Find {
    pub ch: char,
    pub is_back: bool,
    /// Whether to stop before the character.
    pub is_till: bool,
}

/// A text object; whether with the blanks or brackets around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    pub kind: ObjectKind,
    pub is_around: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    Word(bool),
    Paragraph,
    Quote(char),
    Pair(char, char),
}

/// The result of reading the keys typed so far.
#[derive(Debug, Clone, PartialEq)]
pub enum Parsed {
    Command(Command),
    Incomplete,
    /// Incomplete: a search is being typed.
    Searching,
    Invalid,
}

const MAX: usize = 100_000;

/// The reason why keys are not a command.
enum Stop {
    Incomplete,
    Searching,
    Invalid,
}

pub fn parse(keys: &str, is_visual: bool) -> Parsed {
    let mut reader = Reader { keys: keys.chars().peekable() };
    match reader.command(is_visual) {
        Ok(command) => Parsed::Command(command),
        Err(Stop::Incomplete) => Parsed::Incomplete,
        Err(Stop::Searching) => Parsed::Searching,
        Err(Stop::Invalid) => Parsed::Invalid,
    }
}

struct Reader<'a> {
    keys: std::iter::Peekable<std::str::Chars<'a>>,
}

impl Reader<'_> {
    fn next(&mut self) -> Result<char, Stop> {
        self.keys.next().ok_or(Stop::Incomplete)
    }

    fn count(&mut self) -> Option<usize> {
        let mut count = None;
        while let Some(digit) = self.keys.peek().and_then(|key| key.to_digit(10))
            && (digit > 0 || count.is_some())
        {
            let digit = usize::try_from(digit).unwrap_or_default();
            count = Some((count.unwrap_or(0) * 10 + digit).min(MAX));
            self.keys.next();
        }
        count
    }

    fn command(&mut self, is_visual: bool) -> Result<Command, Stop> {
        let (mut register, mut count) = (None, None);
        loop {
            count = self.count().or(count);
            if self.keys.next_if_eq(&'"').is_none() {
                break;
            }
            let name = self.next()?;
            if !name.is_ascii_alphanumeric() && !"\"_-+*".contains(name) {
                return Err(Stop::Invalid);
            }
            register = Some(name);
        }
        let verb = if is_visual { self.visual()? } else { self.normal(&mut count)? };
        Ok(Command { register, count, verb })
    }

    fn normal(&mut self, count: &mut Option<usize>) -> Result<Verb, Stop> {
        use Operator::{Change, Delete, Yank};
        let key = self.next()?;
        let motion = |operator, motion| Verb::Operate(operator, Span::Motion(motion));
        Ok(match key {
            'd' | 'c' | 'y' | '<' | '>' => {
                let operator = match key {
                    'd' => Delete,
                    'c' => Change,
                    'y' => Yank,
                    '<' => Operator::Unindent,
                    _ => Operator::Indent,
                };
                self.operand(operator, key, count)?
            }
            'x' => motion(Delete, Motion::Right),
            'X' => motion(Delete, Motion::Left),
            'D' => motion(Delete, Motion::LineEnd),
            'C' => motion(Change, Motion::LineEnd),
            's' => motion(Change, Motion::Right),
            'S' => Verb::Operate(Change, Span::Lines),
            'Y' => Verb::Operate(Yank, Span::Lines),
            'i' => Verb::Insert(Start::Here),
            'a' => Verb::Insert(Start::After),
            'I' => Verb::Insert(Start::FirstNonBlank),
            'A' => Verb::Insert(Start::LineEnd),
            'o' => Verb::Insert(Start::LineBelow),
            'O' => Verb::Insert(Start::LineAbove),
            'R' => Verb::Overwrite,
            '~' => Verb::ToggleCase,
            'u' => Verb::Undo,
            '\u{12}' => Verb::Redo,
            '.' => Verb::Repeat,
            'g' => match self.next()? {
                key @ ('~' | 'u' | 'U') => self.operand(of_case(key), key, count)?,
                'i' => Verb::Insert(Start::LastInsert),
                other => shared_after_g(other)?,
            },
            other => self.shared(other)?,
        })
    }

    /// A key that means the same with and without a selection.
    fn shared(&mut self, key: char) -> Result<Verb, Stop> {
        Ok(match key {
            'r' => Verb::ReplaceWith(self.next()?),
            'J' => Verb::Join(true),
            'p' => Verb::Put(false),
            'P' => Verb::Put(true),
            'v' => Verb::Select(false),
            'V' => Verb::Select(true),
            other => Verb::Move(self.motion(other)?),
        })
    }

    /// The operand of an operator; its key again means lines.
    fn operand(&mut self, operator: Operator, key: char, count: &mut Option<usize>) -> Result<Verb, Stop> {
        if let Some(more) = self.count() {
            *count = Some((count.unwrap_or(1) * more).min(MAX));
        }
        let span = match self.next()? {
            next if next == key => Span::Lines,
            around @ ('i' | 'a') => Span::Object(self.object(around == 'a')?),
            'g' => match self.next()? {
                next if next == key && "~uU".contains(key) => Span::Lines,
                next => Span::Motion(after_g(next)?),
            },
            next => Span::Motion(self.motion(next)?),
        };
        Ok(Verb::Operate(operator, span))
    }

    fn visual(&mut self) -> Result<Verb, Stop> {
        let selection = |operator, is_lines| Verb::Operate(operator, Span::Selection(is_lines));
        Ok(match self.next()? {
            'd' | 'x' => selection(Operator::Delete, false),
            'D' | 'X' => selection(Operator::Delete, true),
            'c' | 's' => selection(Operator::Change, false),
            'C' | 'S' | 'R' => selection(Operator::Change, true),
            'y' => selection(Operator::Yank, false),
            'Y' => selection(Operator::Yank, true),
            '>' => selection(Operator::Indent, true),
            '<' => selection(Operator::Unindent, true),
            '~' => selection(Operator::ToggleCase, false),
            'u' => selection(Operator::Lower, false),
            'U' => selection(Operator::Upper, false),
            'o' | 'O' => Verb::OtherEnd,
            key @ ('i' | 'a') => Verb::Extend(self.object(key == 'a')?),
            'g' => match self.next()? {
                key @ ('~' | 'u' | 'U') => selection(of_case(key), false),
                other => shared_after_g(other)?,
            },
            other => self.shared(other)?,
        })
    }

    fn object(&mut self, is_around: bool) -> Result<Object, Stop> {
        let kind = match self.next()? {
            'w' => ObjectKind::Word(false),
            'W' => ObjectKind::Word(true),
            'p' => ObjectKind::Paragraph,
            quote @ ('"' | '\'' | '`') => ObjectKind::Quote(quote),
            '(' | ')' | 'b' => ObjectKind::Pair('(', ')'),
            '[' | ']' => ObjectKind::Pair('[', ']'),
            '{' | '}' | 'B' => ObjectKind::Pair('{', '}'),
            '<' | '>' => ObjectKind::Pair('<', '>'),
            _ => return Err(Stop::Invalid),
        };
        Ok(Object { kind, is_around })
    }

    fn motion(&mut self, key: char) -> Result<Motion, Stop> {
        Ok(match key {
            'h' | '\u{8}' => Motion::Left,
            'l' | ' ' => Motion::Right,
            'j' => Motion::Down,
            'k' => Motion::Up,
            'w' | 'W' => Motion::Word(key == 'W'),
            'b' | 'B' => Motion::WordBack(key == 'B'),
            'e' | 'E' => Motion::WordEnd(key == 'E'),
            '0' => Motion::LineStart,
            '^' => Motion::FirstNonblank,
            '$' => Motion::LineEnd,
            '_' => Motion::ThisLine,
            '+' | '\n' => Motion::NextLine,
            '-' => Motion::PreviousLine,
            '|' => Motion::Column,
            'G' => Motion::LastLine,
            '}' => Motion::ParagraphForward,
            '{' => Motion::ParagraphBack,
            'f' | 'F' | 't' | 'T' => {
                let (is_back, is_till) = (key.is_uppercase(), key.eq_ignore_ascii_case(&'t'));
                Motion::Find(Find { ch: self.next()?, is_back, is_till })
            }
            ';' | ',' => Motion::FindAgain(key == ','),
            '%' => Motion::Match,
            '/' | '?' => {
                let mut pattern = String::new();
                loop {
                    match self.keys.next() {
                        Some('\n') => break Motion::Search { pattern, is_back: key == '?' },
                        Some(ch) => pattern.push(ch),
                        None => return Err(Stop::Searching),
                    }
                }
            }
            'n' | 'N' => Motion::SearchAgain(key == 'N'),
            '*' | '#' => Motion::SearchWord { is_back: key == '#', is_whole: true },
            'g' => {
                let next = self.next()?;
                after_g(next)?
            }
            _ => return Err(Stop::Invalid),
        })
    }
}

fn shared_after_g(key: char) -> Result<Verb, Stop> {
    Ok(match key {
        'J' => Verb::Join(false),
        'v' => Verb::Reselect,
        other => Verb::Move(after_g(other)?),
    })
}

fn after_g(key: char) -> Result<Motion, Stop> {
    Ok(match key {
        'g' => Motion::FirstLine,
        'e' | 'E' => Motion::WordEndBack(key == 'E'),
        '_' => Motion::LastNonblank,
        'j' => Motion::Down,
        'k' => Motion::Up,
        '*' | '#' => Motion::SearchWord { is_back: key == '#', is_whole: false },
        _ => return Err(Stop::Invalid),
    })
}

fn of_case(key: char) -> Operator {
    match key {
        'u' => Operator::Lower,
        'U' => Operator::Upper,
        _ => Operator::ToggleCase,
    }
}

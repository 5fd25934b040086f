//! Random lives of a session, as in the model `place.py`, and the model itself.

use super::*;

/// Numbers that are the same for a seed (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

#[derive(Debug, Clone, Default)]
struct Turn {
    ids: Vec<usize>,
    prompt: String,
    reply: String,
    end: TurnEnd,
    embedded: Vec<String>,
    /// A message of the agent in the middle of the reply, which splits it in a replay.
    split: Option<&'static str>,
    /// Whether the agent joins the prompt with the next one.
    joins: bool,
    /// The summary of a compaction.
    summary: String,
}

/// A replayed turn: chunks with the turns that they are of, and the reply.
#[derive(Debug, Clone)]
struct Shown {
    chunks: Vec<(Option<usize>, String)>,
    reply: String,
}

struct Life<'a> {
    random: Random,
    prompts: &'a [&'a str],
    replies: &'a [&'a str],
    /// Whether the agent does more than that of the model: chunks, joined prompts, wrappers and resources.
    is_rich: bool,
    record: Vec<Turn>,
    agent: Vec<Turn>,
    count: usize,
}

impl Life<'_> {
    fn id(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    fn turn(&mut self, end: TurnEnd) -> Turn {
        let id = self.id();
        let mut prompt = if self.random.percent(3) { "" } else { self.random.one(self.prompts) }.to_owned();
        let mut embedded = Vec::new();
        if self.is_rich && self.random.percent(10) {
            embedded = vec![
                format!("file:///{}", self.random.below(3)),
                format!("content {}", self.random.below(3)),
            ];
        }
        if self.is_rich && self.random.percent(5) {
            prompt = format!("/do {prompt}").trim().to_owned();
        }
        let reply = if self.random.percent(50) {
            self.random.one(self.replies).to_owned()
        } else {
            format!("answer {id}\nand a second line {id}")
        };
        Turn { ids: vec![id], prompt, reply, end, embedded, ..Turn::default() }
    }

    fn chunks(&mut self, turn: &Turn) -> Vec<(Option<usize>, String)> {
        let owner = Some(turn.ids[0]);
        if !self.is_rich {
            return vec![(owner, turn.prompt.clone())];
        }
        let mut chunks = Vec::new();
        let mut text = turn.prompt.as_str();
        if text.starts_with('/') && self.random.percent(30) {
            let (name, args) = text.split_once(' ').unwrap_or((text, ""));
            chunks.push((
                owner,
                format!("<command-name>{name}</command-name>\n<command-args>{args}</command-args>"),
            ));
        } else {
            while text.len() > 1 && self.random.percent(30) {
                let (chunk, rest) = text.split_at(1 + self.random.below(text.len() - 1));
                chunks.push((owner, chunk.to_owned()));
                text = rest;
            }
            chunks.push((owner, text.to_owned()));
        }
        match self.random.below(10) {
            0 => chunks[0].1 = format!("{CONTEXT}\n{}", chunks[0].1),
            1 => chunks.insert(0, (None, CONTEXT.to_owned())),
            _ => {}
        }
        if self.random.percent(80) {
            for text in &turn.embedded {
                chunks.insert(self.random.below(chunks.len() + 1), (owner, text.clone()));
            }
        }
        if turn.end == TurnEnd::Open && turn.reply.is_empty() && self.random.percent(30) {
            chunks.push((None, INTERRUPTED.to_owned()));
        }
        chunks
    }

    /// What the agent replays of its turns: with warnings, notes, and some replies split at a message of its own.
    fn version(&mut self) -> Vec<Shown> {
        let mut shown: Vec<Shown> = Vec::new();
        let mut joined: Vec<(Option<usize>, String)> = Vec::new();
        let agent = self.agent.clone();
        for (index, turn) in agent.iter().enumerate() {
            let kind = self.random.below(10);
            let mut chunks = std::mem::take(&mut joined);
            chunks.extend(self.chunks(turn));
            if turn.joins && turn.reply.is_empty() && index + 1 < agent.len() {
                // Nothing of a prompt without text is left.
                let is_blank = |text: &str| text.is_empty() || text.ends_with("</session_context>\n");
                let owned =
                    |(owner, text): (Option<usize>, String)| (owner.filter(|_| !is_blank(&text)), text);
                joined = chunks.into_iter().map(owned).collect();
                continue;
            }
            if let (Some(message), Some((first, second))) = (turn.split, turn.reply.split_once('\n')) {
                shown.push(Shown { chunks, reply: first.to_owned() });
                let chunks = vec![(Some(turn.ids[0]), message.to_owned())];
                shown.push(Shown { chunks, reply: second.to_owned() });
            } else {
                let reply = match kind {
                    0 if !turn.reply.is_empty() => format!("a warning\n{}", turn.reply),
                    1 if !turn.reply.is_empty() => format!("{}\na note", turn.reply),
                    _ => turn.reply.clone(),
                };
                shown.push(Shown { chunks, reply });
            }
            if self.is_rich && turn.end == TurnEnd::Open && self.random.percent(30) {
                shown.push(Shown { chunks: vec![(None, INTERRUPTED.to_owned())], reply: String::new() });
            }
        }
        shown
    }

    /// Replaces the agent's turns by a summary and what it keeps of them: nothing, a reply, or turns.
    fn compact(&mut self) {
        let (id, end) = (self.id(), TurnEnd::Completed);
        let summary = if self.random.percent(30) { "so far".to_owned() } else { format!("so far {id}") };
        let turn = Turn { ids: vec![id], prompt: "/compact".to_owned(), end, summary, ..Turn::default() };
        let kept = [0, 0, 1, 2][self.random.below(4)].min(self.agent.len());
        let keeps_reply = kept == 0 && self.random.percent(60);
        let reply = self.agent.last().filter(|_| keeps_reply).map_or_else(String::new, |it| it.reply.clone());
        let prompt = format!("It is continued.\n{}\nGo on.", turn.summary);
        self.agent.drain(..self.agent.len() - kept);
        self.agent.insert(0, Turn { prompt, reply, ..turn.clone() });
        self.record.push(turn);
    }

    fn step(&mut self, judge: &mut impl FnMut(&mut Vec<Turn>, &[Shown], usize) -> bool) {
        let kind = self.random.below(100);
        match kind {
            0..45 => {
                let turn = self.turn(TurnEnd::Completed);
                self.record.push(turn.clone());
                let split = ["<system>task done</system>", "the history so far, in short", "go"];
                let split = self.random.percent(6).then(|| self.random.one(&split));
                self.agent.push(Turn { split, ..turn });
            }
            45..48 if self.is_rich => {
                let turn = self.turn(TurnEnd::Completed);
                self.record.push(Turn { reply: "API Error: 529".to_owned(), ..turn.clone() });
                self.agent.extend(self.random.percent(70).then(|| Turn { reply: String::new(), ..turn }));
            }
            48..51 if self.is_rich && !self.agent.is_empty() => self.compact(),
            45..55 => {
                let turn = self.turn(TurnEnd::Open);
                let text = self.random.one(&["", "API Error: 529"]);
                self.record.push(Turn { reply: text.to_owned(), ..turn.clone() });
                if self.random.percent(50) {
                    let reply = self.random.one(&["", text]).to_owned();
                    let joins = self.is_rich && self.random.percent(50);
                    self.agent.push(Turn { reply, joins, ..turn });
                }
            }
            55..62 => {
                let turn = self.turn(TurnEnd::Open);
                let len = [0, 4, turn.reply.len() / 2][self.random.below(3)].min(turn.reply.len());
                self.record.push(Turn { reply: turn.reply[..len].to_owned(), ..turn.clone() });
                let stored = self.random.below(10);
                if stored < 7 {
                    let reply = if stored < 5 { turn.reply.clone() } else { String::new() };
                    let joins = self.is_rich && self.random.percent(50);
                    self.agent.push(Turn { reply, joins, ..turn });
                }
            }
            62..67 if !self.agent.is_empty() => {
                self.agent.drain(..self.random.below(self.agent.len()));
                if self.random.percent(50) {
                    let turn = self.turn(TurnEnd::Completed);
                    let prompt = "the history so far, in short".to_owned();
                    self.agent.insert(0, Turn { prompt, reply: String::new(), embedded: Vec::new(), ..turn });
                }
            }
            67..70 if !self.agent.is_empty() => {
                self.agent.truncate(self.random.below(self.agent.len() + 1));
            }
            _ => {
                for _ in 0..self.random.below(4) {
                    let mut turn = self.turn(TurnEnd::Completed);
                    if self.is_rich && self.random.percent(15) {
                        turn = Turn { end: TurnEnd::Open, reply: String::new(), joins: true, ..turn };
                    }
                    self.agent.push(turn);
                }
                if self.record.is_empty() {
                    return;
                }
                let shown = self.version();
                for again in 0..3 {
                    if !judge(&mut self.record, &shown, again) {
                        return;
                    }
                }
                if self.is_rich {
                    let shown = self.version();
                    judge(&mut self.record, &shown, 3);
                }
            }
        }
    }
}

/// Plays lives. `judge` compares a record with a replay, appends what it takes, and returns whether it found a place;
/// it gets the number of the replay since the agent has changed.
fn play(
    lives: std::ops::Range<u64>,
    prompts: &[&str],
    replies: &[&str],
    is_rich: bool,
    mut judge: impl FnMut(&mut Vec<Turn>, &[Shown], usize) -> bool,
) {
    for seed in lives {
        let random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let (record, agent) = (Vec::new(), Vec::new());
        let mut life = Life { random, prompts, replies, is_rich, record, agent, count: 0 };
        for _ in 0..3 + life.random.below(12) {
            life.step(&mut judge);
        }
    }
}

fn recorded_turn(turn: &Turn) -> RecordedTurn {
    let mut summary = Reply::default();
    summary.push(&turn.summary);
    RecordedTurn { embedded: turn.embedded.clone(), summary, ..recorded(&turn.prompt, &turn.reply, turn.end) }
}

fn outcome(record: &[Turn], shown: &[Shown]) -> Outcome {
    let replay: Vec<(Vec<&str>, &str)> = shown
        .iter()
        .map(|turn| (turn.chunks.iter().map(|(_, text)| text.as_str()).collect(), turn.reply.as_str()))
        .collect();
    let replay: Vec<_> = replay.iter().map(|(chunks, reply)| (&**chunks, *reply)).collect();
    compare(record.iter().map(recorded_turn).collect(), &replay)
}

/// The turns of the chunks from a position on, each once.
fn owners(shown: &[Shown], next: Position) -> Vec<usize> {
    let chunks = shown.iter().enumerate().skip(next.turn).flat_map(|(index, turn)| {
        turn.chunks
            .iter()
            .skip(if index == next.turn { next.chunk } else { 0 })
            .filter_map(|(owner, _)| *owner)
    });
    let mut owners: Vec<_> = chunks.collect();
    owners.dedup();
    owners
}

/// The turns that are certainly new: those after the last that the record has. `None`: it has none of them.
fn truth(record: &[Turn], shown: &[Shown]) -> Option<Vec<usize>> {
    let known: BTreeSet<_> = record.iter().flat_map(|turn| &turn.ids).collect();
    let all = owners(shown, Position { turn: 0, chunk: 0 });
    let last = all.iter().rposition(|id| known.contains(id))?;
    Some(all[last + 1..].to_vec())
}

/// Appends what is taken, like the program.
fn take(record: &mut Vec<Turn>, shown: &[Shown], place: &Place) {
    if let Some(mut rest) = place.rest.clone() {
        let replies = shown[rest.turn..place.next.turn.max(rest.turn + 1)].iter();
        let text: String =
            replies.flat_map(|turn| [rest.cut(&turn.reply), "\n"].map(str::to_owned)).collect();
        record.last_mut().unwrap().reply.push_str(&text);
    }
    for (index, turn) in shown.iter().enumerate().skip(place.next.turn) {
        let from = if index == place.next.turn { place.next.chunk } else { 0 };
        let mut ids: Vec<_> = turn.chunks.iter().skip(from).filter_map(|(owner, _)| *owner).collect();
        ids.dedup();
        let chunks = turn.chunks.iter().map(|(_, text)| text.clone()).collect();
        let reply = turn.reply.clone();
        let replayed = ReplayedTurn { chunks, reply: done("", &reply).reply, ..ReplayedTurn::default() };
        if replayed.is_continuation() {
            let last = record.last_mut().unwrap();
            last.reply = format!("{}\n{reply}", last.reply);
        } else {
            let (prompt, end) = (replayed.prompt(from), TurnEnd::Taken);
            record.push(Turn { ids, prompt, reply, end, ..Turn::default() });
        }
    }
}

type Counts = BTreeMap<&'static str, usize>;

/// Compares a replay with a record and counts whether what is taken is right.
fn judge(record: &mut Vec<Turn>, shown: &[Shown], again: usize, counts: &mut Counts) -> bool {
    let Outcome::Place(place) = outcome(record, shown) else {
        *counts.entry("no place").or_default() += 1;
        return false;
    };
    let (new, truth) = (owners(shown, place.next), truth(record, shown));
    let known: BTreeSet<_> = record.iter().flat_map(|turn| &turn.ids).collect();
    let last = record.last().unwrap();
    let is_rest = |truth: &Vec<usize>| last.end != TurnEnd::Completed && truth.get(1..) == Some(&new[..]);
    let kind = match &truth {
        _ if (1..3).contains(&again) && (place.new_turns > 0 || place.rest.is_some()) => "not idempotent",
        None if !new.is_empty() => "nothing was shared",
        Some(truth) if *truth != new && is_rest(truth) => "as the rest",
        Some(truth) if *truth != new && new.iter().any(|id| known.contains(id)) => "doubled",
        Some(truth) if *truth != new => "missed",
        _ => "right",
    };
    *counts.entry(kind).or_default() += 1;
    take(record, shown, &place);
    true
}

fn many() -> Vec<String> {
    (0..1000).map(|index| format!("reply {index}\nand more of {index}")).collect()
}

fn numbers() -> Vec<String> {
    (0..200).map(|index| index.to_string()).collect()
}

fn strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

fn counts(prompts: &[&str], replies: &[&str], is_rich: bool, lives: u64) -> Counts {
    let mut counts = Counts::new();
    play(0..lives, prompts, replies, is_rich, |record, shown, again| {
        judge(record, shown, again, &mut counts)
    });
    println!("{} prompts, {} replies, rich {is_rich}: {counts:?}", prompts.len(), replies.len());
    counts
}

#[test]
fn a_history_is_taken_once_and_in_its_place() {
    let (numbers, many) = (numbers(), many());
    let phrases = ["go", "go on", "fix the bug", "the bug", "continue", "continue\nplease", "review it"];
    for is_rich in [false, true] {
        for prompts in [&["go", "c"][..], &["a", "b", "d", "c", "c", "c"], &phrases, &strs(&numbers)] {
            let counts = counts(prompts, &strs(&many), is_rich, 1_250);
            let count = |kind| counts.get(kind).copied().unwrap_or_default();
            assert_eq!((count("doubled"), count("not idempotent")), (0, 0));
            let wrong = count("missed") + count("nothing was shared");
            assert!(wrong * 1000 <= count("right"), "{wrong}");
        }
    }
}

#[test]
fn short_replies_are_rarely_confused() {
    let numbers = numbers();
    for is_rich in [false, true] {
        for (prompts, max) in
            [(&["go", "c"][..], 40), (&["a", "b", "d", "c", "c", "c"], 60), (&strs(&numbers), 500)]
        {
            let counts = counts(prompts, &["ok", "done"], is_rich, 1_250);
            let wrong: usize =
                ["missed", "nothing was shared", "doubled"].iter().filter_map(|kind| counts.get(kind)).sum();
            assert_eq!(counts.get("not idempotent"), None);
            assert!(wrong * max <= counts["right"], "{wrong}");
        }
    }
}

/// The model `place.py`, word by word, but that a repeated prompt is found once only if no other reply to it is
/// related.
mod model {
    use super::*;

    pub struct Turn {
        pub p: String,
        pub r: String,
        pub ok: bool,
    }

    fn size(lines: &[String]) -> usize {
        lines.iter().map(|line| line.chars().count()).sum()
    }

    fn related(recorded: &str, replayed: &str) -> bool {
        let (mut a, mut b) = (lines(recorded), lines(replayed));
        if a.is_empty() || b.is_empty() {
            return a == b;
        }
        if size(&a) > size(&b) {
            std::mem::swap(&mut a, &mut b);
        }
        b.windows(a.len()).any(|part| part == a)
    }

    fn agree(recorded: &str, replayed: &str) -> bool {
        let (a, b) = (size(&lines(recorded)), size(&lines(replayed)));
        related(recorded, replayed) && 2 * a.min(b) >= a.max(b)
    }

    fn may_begin(replayed: &str, known: &str) -> bool {
        let (a, b) = (lines(replayed), lines(known));
        let Some((last, head)) = a.split_last() else { return true };
        let is_line = |line: &String| line == last || !head.is_empty() && line.len() >= last.len();
        b.starts_with(head) && b.get(head.len()).is_some_and(is_line)
    }

    fn begins(recorded: &str, replayed: &str) -> bool {
        let (a, b) = (lines(recorded), lines(replayed));
        let Some((last, head)) = a.split_last() else { return true };
        b.windows(a.len()).any(|part| part[..head.len()] == *head && part[head.len()].starts_with(last))
    }

    fn compatible(turn: &Turn, replayed: &Turn) -> bool {
        if turn.ok {
            return agree(&turn.r, &replayed.r);
        }
        lines(&replayed.r).is_empty() || begins(&turn.r, &replayed.r)
    }

    /// Whether both have the same turns, which text may not tell apart.
    pub fn is_same(record: &[Turn], replay: &[Turn]) -> bool {
        let is_same = |(turn, replayed): (&Turn, &Turn)| {
            let has_reply = if turn.ok { agree } else { |one: &str, other: &str| lines(one) == lines(other) };
            turn.p == replayed.p && has_reply(&turn.r, &replayed.r)
        };
        record.len() == replay.len() && record.iter().zip(replay).all(is_same)
    }

    pub fn place(record: &[Turn], replay: &[Turn]) -> Option<usize> {
        let mut start = None;
        for (at, turn) in record.iter().enumerate().rev() {
            if !turn.ok || turn.p.trim().is_empty() {
                continue;
            }
            let found: Vec<_> = (0..replay.len()).filter(|i| replay[*i].p == turn.p).collect();
            let there: Vec<_> = found.iter().copied().filter(|i| compatible(turn, &replay[*i])).collect();
            if record.iter().filter(|t| t.p == turn.p).count() == 1 && found.len() == 1 {
                start = Some((at, *there.first()?));
                break;
            }
            let alike =
                |(i, t): &(usize, &Turn)| t.p == turn.p && (*i == at || !t.ok || related(&t.r, &turn.r));
            let alike = record.iter().enumerate().filter(alike).count();
            let there: Vec<_> = found.iter().copied().filter(|i| related(&turn.r, &replay[*i].r)).collect();
            let is_there = there.len() == 1 && compatible(turn, &replay[there[0]]);
            if !lines(&turn.r).is_empty() && alike == 1 && is_there {
                start = Some((at, there[0]));
                break;
            }
        }
        let (at, mut next) = start?;
        let (mut missing, mut rests): (Vec<usize>, BTreeSet<String>) = (Vec::new(), BTreeSet::new());
        for (index, turn) in record.iter().enumerate().skip(at) {
            if next < replay.len() && replay[next].p == turn.p {
                if !compatible(turn, &replay[next]) {
                    return None;
                }
                let shown = lines(&replay[next].r);
                if turn.ok {
                    rests.extend(lines(&turn.r).into_iter().filter(|line| !shown.contains(line)));
                }
                next += 1;
            } else if turn.ok {
                return None;
            } else {
                missing.push(index);
            }
        }
        if missing.contains(&(record.len() - 1)) && next > 0 {
            let last = record.iter().enumerate().rev().find(|(index, _)| !missing.contains(index));
            if last.is_some_and(|(_, last)| {
                !last.ok && size(&lines(&replay[next - 1].r)) > size(&lines(&last.r))
            }) {
                return None;
            }
        }
        let new = &replay[next..];
        let is_new = |turn: &Turn| new.iter().any(|t| t.p == turn.p && compatible(turn, t));
        if missing.iter().any(|index| is_new(&record[*index])) {
            return None;
        }
        if new.iter().any(|t| lines(&t.r).iter().any(|line| rests.contains(line))) {
            return None;
        }
        // An agent may replay turns twice: what is new is not the same as what was there, of which the last may grow.
        let is_repeated = new.iter().enumerate().any(|(at, turn)| {
            let is_last = at + 1 == new.len();
            let is_same = |known: &Turn| {
                known.p == turn.p
                    && (lines(&known.r) == lines(&turn.r) || is_last && may_begin(&turn.r, &known.r))
            };
            let recorded = record
                .iter()
                .any(|known| is_same(known) || known.ok && known.p == turn.p && agree(&known.r, &turn.r));
            let is_known = record.iter().any(|known| known.p == turn.p) && !turn.p.trim().is_empty();
            is_known && (recorded || replay[..next].iter().any(is_same))
        });
        (!is_repeated).then_some(next)
    }
}

#[test]
fn places_are_those_of_the_model() {
    let (numbers, many) = (numbers(), many());
    let mut places = [0, 0];
    for replies in [&["ok", "done"][..], &strs(&many)] {
        for prompts in [&["go", "c"][..], &["a", "b", "d", "c", "c", "c"], &strs(&numbers)] {
            play(0..300, prompts, replies, false, |record, shown, again| {
                // The model of a life counts the last turn that was taken as open forever.
                let is_ok = |index: usize, turn: &Turn| match turn.end {
                    TurnEnd::Taken => index + 1 < record.len(),
                    end => end == TurnEnd::Completed,
                };
                let turns = record.iter().enumerate();
                let ours: Vec<_> = turns
                    .map(|(index, turn)| model::Turn {
                        p: turn.prompt.clone(),
                        r: turn.reply.clone(),
                        ok: is_ok(index, turn),
                    })
                    .collect();
                let theirs = shown.iter().map(|turn| model::Turn {
                    p: turn.chunks[0].1.clone(),
                    r: turn.reply.clone(),
                    ok: true,
                });
                let theirs: Vec<_> = theirs.collect();
                let same = (model::is_same(&ours, &theirs)).then_some(theirs.len());
                let expected = model::place(&ours, &theirs).or(same);
                let place = match outcome(record, shown) {
                    Outcome::Place(place) => Some(place),
                    _ => None,
                };
                // Where completed turns are missing at the end, nothing is taken, but the place is told.
                let lost = |place: &Place| place.missing.iter().any(|number| ours[number - 1].ok);
                let certain = place.as_ref().filter(|place| !lost(place));
                // A turn that was taken is not missing: the agent had it. What may be a turn that did not complete is
                // not new, and two of them with equal prompts may be mistaken for each other.
                let last = record.last();
                let open: Vec<_> = ours.iter().filter(|turn| !turn.ok).map(|turn| &turn.p).collect();
                let are_alike = (1..open.len()).any(|at| open[..at].contains(&open[at]));
                let is_stricter = are_alike
                    || last.is_none_or(|turn| turn.end == TurnEnd::Taken)
                    || expected.is_some_and(|next| {
                        let new: Vec<_> = shown[next..].iter().map(|turn| &turn.chunks[0].1).collect();
                        let may_be_in = |reply: &str| {
                            !reply.is_empty() && shown[next..].iter().any(|turn| turn.reply.contains(reply))
                        };
                        ours.iter().any(|turn| {
                            !turn.ok && (turn.p.is_empty() || new.contains(&&turn.p) || may_be_in(&turn.r))
                        })
                    });
                if place.is_some() || !is_stricter {
                    let next = certain.map(|place| (place.next.turn, place.next.chunk));
                    assert_eq!(next, expected.map(|next| (next, 0)));
                }
                assert!(place.as_ref().is_none_or(|place| !lost(place) || place.new_turns == 0));
                places[usize::from(expected.is_some())] += 1;
                let mut counts = Counts::new();
                judge(record, shown, again, &mut counts) && expected.is_some()
            });
        }
    }
    assert!(places[0] > 300 && places[1] > 2_000, "{places:?}");
}

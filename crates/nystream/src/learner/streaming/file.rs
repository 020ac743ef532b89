//! Saving a streaming learner and going on from it, to the same bits (kind `stream-learner`; see docs/format.md).

use serde::{Deserialize, Serialize};

use super::bank::{Bank, Member};
use super::decision::Decision;
use super::head::Kept;
use super::learner::{Phase, StreamingRidge};
use super::options::StreamingOptions;
use super::reopen::{Header, Watch};
use super::score::RunningScore;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::model::OutputLimits;
use crate::persist::Container;
use crate::rows::RowBlock;
use crate::sketch::DictionaryMethod;
use crate::solver::{Loss, RecursiveRidge};

/// The kind of file.
pub const KIND: &str = "stream-learner";

/// What messages call it.
const WHAT: &str = "the streaming learner";

#[derive(Serialize, Deserialize)]
struct Document {
    options: StreamingOptions,
    outputs: usize,
    features: usize,
    learnt: u64,
    /// Which of the rows that wait were answered singly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    answered: Vec<usize>,
    /// Outputs that the next block's caller gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    owed: Vec<f64>,
    score: RunningScore,
    limits: OutputLimits,
    #[serde(default)]
    decision: Decision,
    /// What predicts while there is no learner, and Σw behind it; none after the head.
    head: Option<(Vec<f64>, f64)>,
    bank: Option<BankHeader>,
    #[serde(default)]
    watch: Header,
}

#[derive(Serialize, Deserialize)]
struct BankHeader {
    leader: usize,
    next_ridge: f64,
    ends: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    units: Vec<f64>,
    members: Vec<MemberHeader>,
}

#[derive(Serialize, Deserialize)]
struct MemberHeader {
    kernel: Kernel,
    method: String,
    errors: Vec<f64>,
    expected: Option<f64>,
    precise: bool,
    loss: Loss,
}

impl StreamingRidge {
    /// Everything needed to go on. A learner whose numbers have overflowed is refused: nobody could go on from it.
    pub fn to_container(&self) -> Result<Container> {
        let (head, bank) = match &self.phase {
            Phase::Head { bank, mean, weight, .. } => (Some((mean.clone(), *weight)), bank.as_ref()),
            Phase::Stream { bank } => (None, Some(bank)),
        };
        let document = Document {
            options: self.options.clone(),
            outputs: self.outputs,
            features: self.width().unwrap_or(0),
            learnt: self.learnt,
            answered: (0..self.answered.len()).filter(|&i| self.answered[i]).collect(),
            owed: self.owed.clone(),
            score: self.score.clone(),
            limits: self.limits.clone(),
            decision: self.decision.clone(),
            head,
            bank: bank.map(|bank| BankHeader {
                leader: bank.leader,
                next_ridge: bank.next_ridge,
                ends: bank.ends,
                units: bank.units.clone(),
                members: bank.members.iter().map(MemberHeader::of).collect(),
            }),
            watch: self.watch.header(),
        };
        let document = serde_json::to_value(document)
            .map_err(|_| Error::Internal("a streaming learner's description could not be written"))?;
        let mut file = Container::new(KIND, document);
        put_kept(&mut file, "pending", &self.pending)?;
        if let Phase::Head { kept, .. } = &self.phase {
            put_kept(&mut file, "head", kept)?;
        }
        for (i, member) in bank.into_iter().flat_map(|bank| &bank.members).enumerate() {
            member.learner.put(&mut file, &format!("member{i}"))?;
        }
        self.watch.put(&mut file)?;
        file.require_readable::<Document>(WHAT)?;
        file.require_finite(WHAT)?;
        Ok(file)
    }

    /// Reads what [`to_container`](Self::to_container) wrote, and checks all of it.
    pub fn from_container(mut file: Container) -> Result<Self> {
        let learner = Self::take(&mut file)?;
        file.finish()?;
        Ok(learner)
    }

    /// Takes the learner out of a file that may hold more.
    pub(in crate::learner) fn take(file: &mut Container) -> Result<Self> {
        file.expect_kind(KIND)?;
        let document: Document = file.document_as()?;
        let (outputs, features) = (document.outputs, document.features);
        let mut learner = Self::new(document.options, outputs).map_err(|e| file.malformed(e.to_string()))?;
        learner.pending = take_kept(file, "pending", features, outputs)?;
        learner.answered = vec![false; learner.pending.len()];
        for i in document.answered {
            *learner.answered.get_mut(i).ok_or_else(|| file.malformed("an answer to a row that does not wait"))? = true;
        }
        if !document.owed.len().is_multiple_of(outputs) {
            return Err(file.malformed("outputs of a part of a row"));
        }
        learner.owed = document.owed;
        learner.known_width = features;
        learner.learnt = document.learnt;
        if !document.score.fits(outputs) {
            return Err(file.malformed("errors that are not those of the outputs"));
        }
        learner.score = document.score;
        if !document.limits.fit(outputs) {
            return Err(file.malformed("limits that are not those of the outputs"));
        }
        learner.limits = document.limits;
        if !document.decision.is_sound() {
            return Err(file.malformed("counts of outputs that cannot have been counted"));
        }
        learner.decision = document.decision;
        learner.watch = Watch::from_file(file, document.watch, features)?;
        let bank = document.bank.map(|header| take_bank(file, header, features, outputs)).transpose()?;
        learner.phase = match (document.head, bank) {
            (Some((mean, weight)), bank) => {
                if mean.len() != outputs || !weight.is_finite() || mean.iter().any(|m| !m.is_finite()) {
                    return Err(file.malformed("a mean that is not finite or has another number of outputs"));
                }
                let kept = take_kept(file, "head", features, outputs)?;
                if kept.len() >= kept.head_end(&learner.options) {
                    return Err(file.malformed("more rows kept than the head holds"));
                }
                Phase::Head { kept, bank, mean, weight }
            }
            (None, Some(bank)) => Phase::Stream { bank },
            (None, None) => return Err(file.malformed("neither a head nor a bank")),
        };
        if learner.pending.len() >= learner.next_block() {
            return Err(file.malformed("more rows waiting than a block holds"));
        }
        Ok(learner)
    }
}

impl MemberHeader {
    fn of(member: &Member) -> Self {
        Self {
            kernel: *member.learner.kernel(),
            method: member.method.to_string(),
            errors: member.errors.clone(),
            expected: member.expected,
            precise: member.learner.sums().is_whitened(),
            loss: member.learner.loss(),
        }
    }
}

fn take_bank(file: &mut Container, header: BankHeader, features: usize, outputs: usize) -> Result<Bank> {
    let mut members = Vec::new();
    for (i, member) in header.members.into_iter().enumerate() {
        let kernel = member.kernel.validated().map_err(|e| file.malformed(e.to_string()))?;
        let method: DictionaryMethod = member.method.parse().map_err(|e: Error| file.malformed(e.to_string()))?;
        let learner = RecursiveRidge::take(file, &format!("member{i}"), kernel, features, outputs, member.precise)?;
        let learner = learner.with_loss(member.loss);
        members.push(Member::judged(learner, method, member.errors, member.expected));
    }
    let blocks = members.first().map_or(0, |member: &Member| member.errors.len());
    if members.iter().any(|m| m.errors.len() != blocks || m.errors.iter().any(|e| !e.is_finite())) {
        return Err(file.malformed("candidates whose errors do not belong together"));
    }
    if header.leader >= members.len() || !header.next_ridge.is_finite() {
        return Err(file.malformed("a bank without its leader"));
    }
    let of_outputs = header.units.is_empty() || header.units.len() == outputs;
    if !of_outputs || !header.units.iter().all(|unit| unit.is_finite() && *unit > 0.0) {
        return Err(file.malformed("units that are not those of the outputs"));
    }
    Ok(Bank::from_parts(members, header.leader, header.next_ridge, header.ends, header.units))
}

fn put_kept(file: &mut Container, name: &str, kept: &Kept) -> Result<()> {
    // Without rows there is nothing to be dense or sparse.
    let none = RowBlock::dense(0);
    let rows = if kept.len() == 0 { none.rows() } else { kept.rows.rows() };
    file.put_rows(&format!("{name}_row"), rows)?;
    file.put_f64(&format!("{name}_codes"), &[kept.codes.len()], kept.codes.clone())?;
    file.put_f64(&format!("{name}_weights"), &[kept.weights.len()], kept.weights.clone())
}

fn take_kept(file: &mut Container, name: &str, features: usize, outputs: usize) -> Result<Kept> {
    let (_, codes) = file.take_finite(&format!("{name}_codes"), 1)?;
    let (_, weights) = file.take_finite(&format!("{name}_weights"), 1)?;
    let width = if weights.is_empty() { 0 } else { features };
    let mut rows = file.take_rows(&format!("{name}_row"), width)?;
    if rows.len() != weights.len() || codes.len() != weights.len() * outputs || weights.iter().any(|w| *w <= 0.0) {
        return Err(file.malformed(format!("{name}: rows, codes and weights that do not belong together")));
    }
    if rows.is_empty() {
        rows = RowBlock::dense(0);
    }
    Ok(Kept { rows, codes, weights, outputs })
}

//! A source learnt in one reading, from records to a model that predicts records.

use nystream::fit::{FitOptions, Silent, two_pass};
use nystream::learner::streaming::StreamingOptions;
use nystream::learner::{StreamPass, stream};
use nystream::model::TrainedModel;
use nystream::persist::Container;
use nystream::preprocess::{Scale, TableOptions};
use nystream::source::{OpenOptions, RecordBlock, Stops, open};

fn table() -> TableOptions {
    TableOptions { scale: Scale::Standard, ..TableOptions::default() }
}

fn options(budget: usize) -> StreamingOptions {
    StreamingOptions { budget, ..StreamingOptions::default() }
}

/// Root mean squared error (or share of mistakes) of a model on a source whose last column is the target.
fn error(model: &TrainedModel, location: &str) -> f64 {
    let mut source = open(location, &OpenOptions::default()).unwrap();
    let mut block = RecordBlock::default();
    let (mut sum, mut rows) = (0.0, 0.0);
    while source.read(&mut block, 1000).unwrap() {
        let mut predictor = model.predictor(source.schema(), source.origin()).unwrap();
        let wanted = nystream::model::Wanted::default();
        let predictions = predictor.predict(&block, wanted).unwrap();
        for i in 0..block.len() {
            let mut record = vec![0.0; block.cells.cols()];
            block.cells.rows().row(i).copy_to(&mut record);
            let truth = *record.last().unwrap();
            let value = predictions.values[i];
            if model.labels().is_empty() {
                sum += (value - truth).powi(2);
            } else {
                let label: f64 = model.labels()[value as usize].parse().unwrap();
                sum += f64::from(u8::from(label != truth));
            }
            rows += 1.0;
        }
    }
    if model.labels().is_empty() { f64::sqrt(sum / rows) } else { sum / rows }
}

#[test]
fn one_reading_comes_close_to_two() {
    let (train, test) = ("synth:friedman?n=6000&seed=1", "synth:friedman?n=2000&seed=2");
    let mut source = open(train, &OpenOptions::default()).unwrap();
    let one = stream(source.as_mut(), table(), options(150), &mut Silent).unwrap();
    assert_eq!((one.summary().rows, one.summary().method.as_str()), (6000, "stream"));
    assert!(one.regression().centres().len() <= 150);
    let mut source = open(train, &OpenOptions::default()).unwrap();
    let two = two_pass(source.as_mut(), &FitOptions { budget: 150, ..FitOptions::default() }, &mut Silent).unwrap();
    let (one, two) = (error(&one, test), error(&two, test));
    assert!(one < 1.1 * two, "{one} {two}");
}

#[test]
fn classes_get_probabilities_and_a_running_score() {
    let mut source = open("synth:rings?n=3000&seed=1", &OpenOptions::default()).unwrap();
    let mut pass = StreamPass::begin(source.as_mut(), table(), options(60), &mut Silent).unwrap();
    assert!(pass.is_classification());
    while pass.advance(source.as_mut()).unwrap() > 0 {}
    assert_eq!(pass.records(), 3000);
    let running = pass.learner().score().mistake_rate();
    let model = pass.finish().unwrap();
    assert!(model.calibration().is_some());
    let later = error(&model, "synth:rings?n=1000&seed=9");
    assert!(running < 0.4 && later <= running + 0.02, "{running} {later}");
}

#[test]
fn short_and_constant_streams_are_refused_with_a_reason() {
    let mut source = open("synth:friedman?n=5", &OpenOptions::default()).unwrap();
    let message = stream(source.as_mut(), table(), options(10), &mut Silent).unwrap_err().to_string();
    assert!(message.contains("at least 8 rows"), "{message}");
}

#[test]
fn reading_ahead_changes_nothing() {
    let location = "synth:friedman?n=20000&seed=4";
    let begin = |source: &mut dyn nystream::source::RecordSource| {
        StreamPass::begin(source, table(), options(20), &mut Silent).unwrap()
    };
    let mut source = open(location, &OpenOptions::default()).unwrap();
    let mut in_turns = begin(source.as_mut());
    while in_turns.advance(source.as_mut()).unwrap() > 0 {}
    let mut source = open(location, &OpenOptions::default()).unwrap();
    let (mut ahead, mut seen) = (begin(source.as_mut()), 0);
    let first = ahead.records();
    ahead
        .advance_to_end(source.as_mut(), &mut |pass, records, _| {
            seen += records;
            assert_eq!(pass.records(), first + seen);
            Ok(())
        })
        .unwrap();
    assert_eq!(ahead.records(), 20_000);
    let bytes = |pass: &StreamPass| pass.to_container().unwrap().to_bytes().unwrap();
    assert!(bytes(&in_turns) == bytes(&ahead));
}

#[test]
fn either_side_of_reading_ahead_may_fail() {
    let mut text = String::from("a,b,y\n");
    for i in 0..30_000 {
        let cell = if i == 25_000 { "what".to_owned() } else { (i % 7).to_string() };
        text.push_str(&format!("{cell},{},{}\n", i % 5, i % 3));
    }
    let start = |text: String| {
        let reader = Box::new(std::io::Cursor::new(text.into_bytes()));
        let mut source = nystream::source::open_reader("rows.csv", reader, &OpenOptions::default()).unwrap();
        let pass = StreamPass::begin(source.as_mut(), table(), options(20), &mut Silent).unwrap();
        (source, pass)
    };
    let (mut source, mut pass) = start(text.clone());
    let message = pass.advance_to_end(source.as_mut(), &mut |_, _, _| Ok(())).unwrap_err().to_string();
    assert!(message.contains("rows.csv") && message.contains("25001") && message.contains("what"), "{message}");
    // A caller that gives up stops the reader, wherever it is.
    let (mut source, mut pass) = start(text);
    let mut calls = 0;
    let stop = pass.advance_to_end(source.as_mut(), &mut |_, _, _| {
        calls += 1;
        if calls == 2 { Err(nystream::Error::Internal("enough")) } else { Ok(()) }
    });
    assert!(stop.is_err() && calls == 2);
}

#[test]
fn checkpoints_without_a_fingerprint_of_all_rows_can_be_gone_on_from() {
    let begin = |location: &str| {
        let mut source = open(location, &OpenOptions::default()).unwrap();
        let mut pass = StreamPass::begin(source.as_mut(), table(), options(20), &mut Silent).unwrap();
        pass.advance_to_end(source.as_mut(), &mut |_, _, _| Ok(())).unwrap();
        pass
    };
    let pass = begin("synth:friedman?n=5000&seed=4");
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut old = pass.to_container().unwrap();
    assert!(old.document["pass"].as_object_mut().unwrap().remove("fingerprint").is_some());
    old.save(file.path()).unwrap();
    let mut source = open("synth:friedman?n=6000&seed=4", &OpenOptions::default()).unwrap();
    let mut resumed = StreamPass::resume(file.path(), source.as_mut(), &table(), &options(20), &mut Silent).unwrap();
    while resumed.advance(source.as_mut()).unwrap() > 0 {}
    // It has one from then on.
    let whole = begin("synth:friedman?n=6000&seed=4");
    let fingerprint = |pass: &StreamPass| pass.to_container().unwrap().document["pass"]["fingerprint"].to_string();
    assert_eq!(fingerprint(&resumed), fingerprint(&whole));
    // What is no fingerprint is no such file.
    let bytes = whole.to_container().unwrap().to_bytes().unwrap();
    assert!(resumed.finish().unwrap().to_bytes().unwrap() == whole.finish().unwrap().to_bytes().unwrap());
    let mut wrong = Container::from_bytes("c.part", &bytes).unwrap();
    wrong.document["pass"]["fingerprint"] = "12".into();
    let message = StreamPass::from_container(wrong).unwrap_err().to_string();
    assert!(message.contains("c.part") && message.contains("fingerprint"), "{message}");
}

#[test]
fn wherever_it_stops_to_be_saved_it_learns_and_goes_on_alike() {
    let location = "synth:friedman?n=9000&seed=5";
    let mut source = open(location, &OpenOptions::default()).unwrap();
    let mut whole = StreamPass::begin(source.as_mut(), table(), options(20), &mut Silent).unwrap();
    while whole.advance(source.as_mut()).unwrap() > 0 {}
    let bytes = |pass: StreamPass| pass.finish().unwrap().to_bytes().unwrap();
    let whole = bytes(whole);
    let mut source = open(location, &OpenOptions::default()).unwrap();
    let mut stops = Stops::new(source.as_mut(), 700);
    let mut files = Vec::new();
    let mut keep = |pass: &StreamPass| {
        if pass.records().is_multiple_of(700) {
            let file = tempfile::NamedTempFile::new().unwrap();
            pass.save(file.path()).unwrap();
            files.push((pass.records(), file));
        }
        Ok(())
    };
    let then = &mut |pass: &StreamPass, _: u64, _: Option<f64>| keep(pass);
    let mut pass = StreamPass::begin_with(&mut stops, table(), options(20), &mut Silent, then).unwrap();
    pass.advance_to_end(&mut stops, then).unwrap();
    assert!(bytes(pass) == whole);
    let places: Vec<u64> = files.iter().map(|(records, _)| *records).collect();
    assert_eq!(places, (1..=12).map(|i| 700 * i).collect::<Vec<_>>());
    // Among the first rows, which are read before any is learnt, and after them.
    for (records, file) in files.iter().filter(|(records, _)| [700, 3500, 4200].contains(records)) {
        let mut source = open(location, &OpenOptions::default()).unwrap();
        let mut resumed =
            StreamPass::resume(file.path(), source.as_mut(), &table(), &options(20), &mut Silent).unwrap();
        while resumed.advance(source.as_mut()).unwrap() > 0 {}
        assert!(bytes(resumed) == whole, "{records}");
        let mut other = open("synth:friedman?n=9000&seed=6", &OpenOptions::default()).unwrap();
        let refused = StreamPass::resume(file.path(), other.as_mut(), &table(), &options(20), &mut Silent);
        assert!(refused.unwrap_err().to_string().contains("other data"));
    }
}

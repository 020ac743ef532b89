//! Saved and resumed, and files that are not what they seem.

use super::*;
use crate::persist::TensorData;

fn reload(squeak: &Squeak) -> Squeak {
    Squeak::from_container(Container::from_bytes("test", &bytes(squeak)).unwrap()).unwrap()
}

#[test]
fn a_saved_dictionary_goes_on_to_the_same_bits() {
    let narrow = oracle::normal_rows(300, 2, 1);
    for block in [narrow.clone(), oracle::normal_rows(150, 40, 2), sparse_copy(&narrow)] {
        for schedule in schedules() {
            for budget in [None, Some(25)] {
                let options = SqueakOptions { budget, ..options(schedule) };
                for cut in [0, 7, block.len() / 2 + 3] {
                    let mut squeak = squeak_of(&options, block.rows().slice(0, cut));
                    let mut loaded = reload(&squeak);
                    assert!(bytes(&loaded) == bytes(&squeak), "{schedule:?} {cut}");
                    squeak.insert(block.rows().slice(cut, block.len())).unwrap();
                    loaded.insert(block.rows().slice(cut, block.len())).unwrap();
                    assert!(bytes(&loaded) == bytes(&squeak), "{schedule:?} {cut} {budget:?}");
                    assert_eq!(loaded.dictionary().unwrap(), squeak.dictionary().unwrap());
                }
            }
        }
    }
}

#[test]
fn a_merged_dictionary_goes_on_to_the_same_bits() {
    let block = oracle::normal_rows(120, 2, 3);
    for schedule in schedules() {
        let part =
            |seed, from, to| squeak_of(&SqueakOptions { seed, ..options(schedule) }, block.rows().slice(from, to));
        let mut merged = part(1, 0, 50).merge(part(2, 50, 90)).unwrap();
        let mut loaded = reload(&merged);
        merged.insert(block.rows().slice(90, 120)).unwrap();
        loaded.insert(block.rows().slice(90, 120)).unwrap();
        assert!(bytes(&loaded) == bytes(&merged));
        // Merging a loaded one is merging the one that was saved.
        let direct = part(3, 0, 30).merge(part(4, 30, 61)).unwrap();
        assert!(bytes(&reload(&part(3, 0, 30)).merge(reload(&part(4, 30, 61))).unwrap()) == bytes(&direct));
    }
}

/// The file with one tensor or the document changed.
fn altered(
    squeak: &Squeak,
    change: &dyn Fn(&str, &mut TensorData),
    edit: &dyn Fn(&mut serde_json::Value),
) -> Result<Squeak> {
    let original = squeak.to_container()?;
    let mut document = original.document.clone();
    edit(&mut document);
    let mut copy = Container::new(original.kind.clone(), document);
    for (name, tensor) in original.tensors() {
        let mut data = tensor.data.clone();
        change(name, &mut data);
        let shape = if data.len() == tensor.data.len() { tensor.shape.clone() } else { vec![data.len()] };
        match data {
            TensorData::F64(data) => copy.put_f64(name, &shape, data)?,
            TensorData::U32(data) => copy.put_u32(name, &shape, data)?,
            TensorData::U64(data) => copy.put_u64(name, &shape, data)?,
        }
    }
    Squeak::from_container(Container::from_bytes("hostile", &copy.to_bytes()?)?)
}

#[test]
fn hostile_files_are_refused() {
    let block = oracle::normal_rows(86, 2, 4);
    let squeak = squeak_of(
        &SqueakOptions { budget: Some(60), ..options(Schedule::Lazy { rows: 16, growth: 3.0 }) },
        block.rows(),
    );
    assert!(squeak.scorer.factor().is_some() && squeak.atoms() > 3);
    assert!(altered(&squeak, &|_, _| (), &|_| ()).is_ok());
    let tensor = |target: &str, value: f64| {
        let change = |name: &str, data: &mut TensorData| match data {
            TensorData::F64(data) if name == target => data[0] = value,
            TensorData::U64(data) if name == target => data[0] = value as u64,
            _ => (),
        };
        match altered(&squeak, &change, &|_| ()) {
            Err(Error::Format { .. }) => (),
            other => panic!("{target} {value}: {}", other.is_ok()),
        }
    };
    for (target, values) in [
        ("atoms", &[f64::NAN, f64::INFINITY][..]),
        ("pending_rows", &[f64::NAN]),
        ("probabilities", &[0.0, -0.5, 1.5, f64::NAN]),
        ("copies", &[0.0, 6.0]),
        ("trials", &[0.0, 1e15]),
        ("row_numbers", &[1e15]),
        ("kernels", &[f64::NAN]),
        ("factor", &[0.0, -1.0, f64::NAN]),
    ] {
        values.iter().for_each(|&value| tensor(target, value));
    }
    for target in ["probabilities", "copies", "trials", "row_numbers", "kernels", "factor"] {
        let shorten = |name: &str, data: &mut TensorData| match data {
            TensorData::F64(data) if name == target => data.truncate(2),
            TensorData::U64(data) if name == target => data.truncate(2),
            _ => (),
        };
        assert!(matches!(altered(&squeak, &shorten, &|_| ()), Err(Error::Format { .. })), "{target}");
    }
    let edits: [(&str, serde_json::Value); 14] = [
        ("/method", "ink".into()),
        ("/leverage_ridge", 0.1.into()),
        ("/leverage_ridge", (-1.0).into()),
        ("/energy", (-1.0).into()),
        ("/residual", serde_json::Value::Null),
        ("/features", 3.into()),
        ("/rows", 10.into()),
        ("/rows", u64::MAX.into()),
        ("/least_oversampling", 0.into()),
        ("/least_oversampling", serde_json::Value::Null),
        ("/options/accuracy", 1.0.into()),
        ("/options/budget", 2.into()),
        ("/options/schedule/lazy/rows", 1.into()),
        ("/factor", serde_json::Value::Null),
    ];
    for (place, value) in edits {
        let edit = |document: &mut serde_json::Value| *document.pointer_mut(place).unwrap() = value.clone();
        assert!(matches!(altered(&squeak, &|_, _| (), &edit), Err(Error::Format { .. })), "{place} {value}");
    }
    // A kernel matrix that is none gives an error when it is used, not a panic.
    let nonsense = |name: &str, data: &mut TensorData| match data {
        TensorData::F64(data) if name == "kernels" => data.iter_mut().for_each(|v| *v = -5.0),
        _ => (),
    };
    let mut loaded = altered(&squeak, &nonsense, &|_| ()).unwrap();
    let outcome = loaded.insert(oracle::normal_rows(300, 2, 5).rows()).and_then(|()| loaded.report());
    assert!(matches!(outcome, Err(Error::NotPositiveDefinite { .. })), "{outcome:?}");
}

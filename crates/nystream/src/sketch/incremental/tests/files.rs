//! Saving and going on.

use serde_json::json;

use super::super::{IncrementalOptions, IncrementalSketch, SketchHeader};
use super::{normal_rows, options, sparse_rows};
use crate::kernel::Kernel;
use crate::persist::Container;
use crate::rows::RowBlock;

fn enter(sketch: &mut IncrementalSketch, rows: &RowBlock, from: usize, to: usize) {
    let mut kernels = vec![0.0; sketch.map().centres().len()];
    for i in from..to {
        sketch.map().kernels(rows.rows().row(i), &mut kernels);
        sketch.enter(rows.rows().row(i), &kernels).unwrap();
    }
}

fn saved(sketch: &IncrementalSketch) -> Container {
    let mut file = Container::new("test", json!({}));
    let header = sketch.write(&mut file).unwrap();
    file.document = serde_json::to_value(header).unwrap();
    Container::from_bytes("memory", &file.to_bytes().unwrap()).unwrap()
}

fn loaded(mut file: Container) -> crate::Result<IncrementalSketch> {
    let header: SketchHeader = file.document_as()?;
    IncrementalSketch::read(&Kernel::gaussian(1.5)?, header, &mut file)
}

#[test]
fn a_saved_sketch_goes_on_with_the_same_bits() {
    for (rows, most_rows) in [(normal_rows(60, 3, 1), 1000), (normal_rows(60, 3, 1), 23), (sparse_rows(60, 5, 2), 20)] {
        let kernel = Kernel::gaussian(1.5).unwrap();
        let options = IncrementalOptions { most_rows, ..options(4) };
        let mut whole = IncrementalSketch::start(&kernel, options, rows.rows().slice(0, 20)).unwrap();
        for stop in [20, 22, 47] {
            let from = whole.rows_entered() as usize;
            enter(&mut whole, &rows, from, stop);
            let mut copy = loaded(saved(&whole)).unwrap();
            assert_eq!(copy.map().weights(), whole.map().weights(), "the map, though rows entered since");
            let mut going_on = whole.clone();
            for sketch in [&mut copy, &mut going_on] {
                enter(sketch, &rows, stop, 60);
                sketch.refresh().unwrap();
            }
            assert_eq!(copy.projected_kernels(), going_on.projected_kernels());
            assert_eq!(copy.projected_samples(), going_on.projected_samples());
            assert_eq!(copy.map().weights(), going_on.map().weights());
        }
    }
}

#[test]
fn files_that_contradict_themselves_are_refused() {
    let rows = normal_rows(20, 3, 1);
    let sketch = IncrementalSketch::start(&Kernel::gaussian(1.5).unwrap(), options(4), rows.rows()).unwrap();
    for (place, value) in [
        ("/options/sample_size", json!(8)),
        ("/options/projection_size", json!(16)),
        ("/options/rank", json!(5)),
        ("/options/blocks", json!(0)),
        ("/options/most_rows", json!(19)),
        ("/options/most_rows", json!(0)),
        ("/entered", json!(21)),
        ("/entered", json!(0)),
        ("/features", json!(2)),
    ] {
        let mut file = saved(&sketch);
        *file.document.pointer_mut(place).unwrap() = value.clone();
        assert!(loaded(file).is_err(), "{place} {value}");
    }
    assert!(loaded(saved(&sketch)).is_ok());
}

use super::*;
use crate::random::Generator;
use pulp::Scalar;

#[test]
fn a_triangle_twice_is_the_product_with_its_gram_matrix() {
    let mut rng = Generator::new(6);
    let mut triangle = TiledTriangle::default();
    let mut lower: Vec<Vec<f64>> = Vec::new();
    for n in 0..40 {
        let x: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let mut out = vec![7.0; n];
        let squares = triangle.twice(&x, &mut out);
        let v: Vec<f64> = lower.iter().map(|row| row.iter().zip(&x).map(|(l, x)| l * x).sum()).collect();
        let size: f64 = v.iter().map(|v| v * v).sum();
        assert!((squares - size).abs() <= 1e-13 * n as f64 * size, "{n}");
        for j in 0..n {
            let expected: f64 = (j..n).map(|i| lower[i][j] * v[i]).sum();
            assert!((out[j] - expected).abs() < 1e-12 * n as f64 * (1.0 + size.sqrt()), "{n}");
        }
        lower.push((0..=n).map(|_| rng.normal()).collect());
        triangle.push(&lower[n]);
        let padded = |row: &[f64]| row.iter().copied().chain(std::iter::repeat(0.0)).take(n + 1).collect::<Vec<_>>();
        assert!((0..=n).all(|i| triangle.row(i).collect::<Vec<_>>() == padded(&lower[i])));
    }
}

#[test]
fn both_products_at_once_are_one_after_the_other() {
    let mut rng = Generator::new(3);
    let mut triangle = TiledTriangle::default();
    for n in 1..40 {
        let row: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        triangle.push(&row);
        let x: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let (mut at_once, mut apart) = (vec![7.0; n], vec![8.0; n]);
        let squares = triangle.twice(&x, &mut at_once);
        assert_eq!(triangle.first(&x), squares);
        triangle.second(&mut apart);
        assert_eq!(apart, at_once);
    }
}

#[test]
fn rows_of_any_shape_come_back_and_add_their_gram_products_on_any_registers() {
    let mut rng = Generator::new(4);
    for (rows, width) in [(1, 1), (3, 5), (4, 8), (7, 13), (20, 200), (33, 31), (0, 3)] {
        let numbers: Vec<f64> = (0..rows * width).map(|_| rng.normal()).collect();
        let x: Vec<f64> = (0..width).map(|_| rng.normal()).collect();
        let mut tiled = TiledRows::new(width, &numbers);
        assert_eq!(tiled.numbers(), numbers);
        let mut pushed = TiledRows::new(width, &[]);
        numbers.chunks_exact(width).for_each(|row| pushed.push(row));
        assert!(pushed.numbers() == numbers && pushed.len() == rows);
        let (mut product, mut expected) = (vec![7.0; rows], vec![8.0; rows]);
        pushed.times(&x, &mut product);
        tiled.times(&x, &mut expected);
        assert_eq!(product, expected);
        let mut out = x.clone();
        tiled.add_gram_times(&x, 0.5, &mut out);
        let (mut plain, parts) = (vec![Part::default(); width.div_ceil(SIDE)], width.div_ceil(SIDE));
        let (rows_of_tiles, sums) = (tiled.tiles.chunks_exact(parts), &mut plain[..]);
        Twice { rows: rows_of_tiles, x: &tiled.x, factor: 0.5, sums, squares: &mut 0.0 }.run::<false, Scalar>(Scalar);
        let row = |i: usize| &numbers[i * width..(i + 1) * width];
        let product = |i: usize| row(i).iter().zip(&x).map(|(a, b)| a * b).sum::<f64>();
        for j in 0..width {
            let expected: f64 = 0.5 * (0..rows).map(|i| row(i)[j] * product(i)).sum::<f64>();
            let limit = 1e-13 * (1 + rows * width) as f64;
            assert!((out[j] - x[j] - expected).abs() < limit, "{rows} {width}");
            assert!((plain.as_flattened()[j] - expected).abs() < limit, "{rows} {width}");
        }
        // The same by halves, on any registers.
        let (mut halves, mut values) = (x.clone(), vec![7.0; rows]);
        tiled.times(&x, &mut values);
        let mut plain_values = vec![Part::default(); rows.div_ceil(SIDE)];
        let (rows_of_tiles, squares) = (tiled.tiles.chunks_exact(parts), &mut 0.0);
        First { rows: rows_of_tiles, x: &tiled.x, values: &mut plain_values, squares }.run::<false, Scalar>(Scalar);
        for (found, plain) in values.iter_mut().zip(plain_values.as_flattened()) {
            assert!((*found - plain).abs() < 1e-13 * (1 + width) as f64, "{rows} {width}");
            *found *= 0.5;
        }
        tiled.add_transposed_times(&values, &mut halves);
        for (half, whole) in halves.iter().zip(&out) {
            assert!((half - whole).abs() < 1e-13 * (1 + rows * width) as f64, "{rows} {width}");
        }
    }
}

"""Operations element by element: operators, expressions, types, fills, scaled sums."""

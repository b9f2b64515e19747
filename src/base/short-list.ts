/**
 * A list in a message, which names so many at most: `a, b and 3 more`, `a; b; and 3 more`. Pure.
 * @param separator `; ` for items that are clauses
 */
export function shortList(items: readonly string[], most: number, separator: ", " | "; "): string {
  const more = items.length - most;
  const rest = more > 0 ? `${separator === "; " ? ";" : ""} and ${more} more` : "";
  return `${items.slice(0, most).join(separator)}${rest}`;
}

import type { FieldProblem } from "../ports/field-problem.ts";
import { ManifestError, type Origin } from "../yaml/manifest-error.ts";

/**
 * The engine's problems with objects, each as a message with the file and line of the field. Pure.
 * @param origins the sources of the objects, by their names (`Pod default/web`)
 */
export function locatedProblems(
  problems: readonly FieldProblem[],
  origins: ReadonlyMap<string, Origin>,
): readonly string[] {
  return problems.map(({ object, path, detail }) => {
    const origin = origins.get(object) ?? { file: object, locate: () => undefined };
    return ManifestError.at(origin, path, detail).message;
  });
}

import type { Container } from "../api/container.ts";
import { notSupported, required, tooLong, type FieldError } from "./field-errors.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";

const actions = ["Restart", "RestartAllContainers"];
const operators = ["In", "NotIn"];

/** Checks a container's own restart rules (KEP-5307, KEP-5532; upstream: validateContainerRestartPolicy). */
export function* validateRestartRules(container: Container, path: FieldPath): Iterable<FieldError> {
  const rules = container.restartPolicyRules ?? [];
  if (rules.length > 0 && container.restartPolicy === undefined) {
    yield required([...path, "restartPolicy"], "must specify restartPolicy when restart rules are used");
  }
  if (rules.length > 20) yield tooLong([...path, "restartPolicyRules"], "20 rules");
  for (const [index, { action, exitCodes }] of rules.entries()) {
    const here = [...path, "restartPolicyRules", index];
    if (!actions.includes(action)) yield notSupported([...here, "action"], action, actions);
    if (exitCodes === undefined) {
      yield required([...here, "exitCodes"], "must be specified");
      continue;
    }
    const { operator, values = [] } = exitCodes;
    if (!operators.includes(operator)) yield notSupported([...here, "exitCodes", "operator"], operator, operators);
    if (values.length > 255) yield tooLong([...here, "exitCodes", "values"], "255 values");
  }
}

import type { Container } from "../api/container.ts";
import type { HttpGetAction } from "../api/volume.ts";
import { forbidden, invalid, notSupported, required, type FieldError } from "./field-errors.ts";
import { portNameProblem } from "../base/formats.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";

type Lifecycle = NonNullable<Container["lifecycle"]>;

/** Everything that a lifecycle hook or a probe may do; each of them takes some of it. */
export type Handler = NonNullable<Container["livenessProbe"]> & Pick<NonNullable<Lifecycle["preStop"]>, "sleep">;

const actions = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] as const;

/**
 * Checks that a handler says exactly one thing to do, and that thing (upstream: validateHandler).
 * @param graceSeconds of the pod: a hook that sleeps for longer would never end
 */
export function* validateHandler(
  handler: Handler,
  path: FieldPath,
  graceSeconds: number | undefined,
): Iterable<FieldError> {
  const [given, ...others] = actions.filter((action) => handler[action] !== undefined);
  if (given === undefined) yield required(path, "must specify a handler type");
  for (const other of others) yield forbidden([...path, other], "may not specify more than 1 handler type");
  const { exec, httpGet, tcpSocket, grpc, sleep } = handler;
  if (given === "exec" && exec && !exec.command?.length) yield required([...path, "exec", "command"]);
  if (given === "httpGet" && httpGet) yield* validateHttpGet(httpGet, [...path, "httpGet"]);
  if (given === "tcpSocket" && tcpSocket) yield* validatePort(tcpSocket.port, [...path, "tcpSocket", "port"]);
  if (given === "grpc" && grpc) yield* validatePort(grpc.port, [...path, "grpc", "port"]);
  if (given === "sleep" && sleep && graceSeconds !== undefined) {
    const { seconds } = sleep;
    if (seconds < 0 || seconds > graceSeconds) {
      const detail = `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`;
      yield invalid([...path, "sleep"], seconds, detail);
    }
  }
}

function* validateHttpGet(action: HttpGetAction, path: FieldPath): Iterable<FieldError> {
  if (!action.path) yield required([...path, "path"]);
  yield* validatePort(action.port, [...path, "port"]);
  const schemes = ["HTTP", "HTTPS"];
  if (!schemes.includes(action.scheme ?? "")) yield notSupported([...path, "scheme"], action.scheme ?? "", schemes);
  for (const { name } of action.httpHeaders ?? []) {
    if (/^[-A-Za-z0-9]+$/u.test(name)) continue;
    yield invalid([...path, "httpHeaders"], name, "a valid HTTP header must consist of alphanumeric characters or '-'");
  }
}

function* validatePort(port: number | string, path: FieldPath): Iterable<FieldError> {
  const isNumber = typeof port === "number";
  if (isNumber && !(port >= 1 && port <= 65535)) yield invalid(path, port, "must be between 1 and 65535, inclusive");
  const problem = isNumber ? undefined : portNameProblem(port);
  if (problem !== undefined) yield invalid(path, port, problem);
}

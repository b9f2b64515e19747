import type { ContainerPort } from "../api/container.ts";
import type { HttpGetAction } from "../api/volume.ts";
import type { HttpProbeRequest } from "../ports/network-probes.ts";

/** The number of a port that may be named. @throws Error when the container has no port of that name */
export function resolvePort(port: number | string, ports: readonly ContainerPort[]): number {
  const named = ports.find(({ name }) => name !== undefined && name === port)?.containerPort;
  const number = named ?? Number(port);
  if (typeof port === "string" && named === undefined && !/^\d+$/.test(port)) {
    throw new Error(`the container has no port named "${port}"`);
  }
  if (!(number > 0 && number < 65_536)) throw new Error(`invalid port number: ${port}`);
  return number;
}

/**
 * The request that an httpGet action of a pod's spec asks for (upstream: NewRequestForHTTPGetAction).
 * @param host where the action names none: the pod's address
 * @throws Error when it names a port that the container has not
 */
export function httpGetRequest(
  action: HttpGetAction,
  ports: readonly ContainerPort[],
  host: string,
  userAgent: string,
): HttpProbeRequest {
  const target = action.host || host;
  const port = resolvePort(action.port, ports);
  const scheme = (action.scheme ?? "").toLowerCase() === "https" ? "https" : "http";
  return { scheme, host: target, port, path: requestTarget(action.path ?? ""), headers: headers() };

  function headers(): (readonly [string, string])[] {
    const given = (action.httpHeaders ?? []).map(({ name, value }) => [name, value] as const);
    const first = (wanted: string): string | undefined =>
      given.find(([name]) => name.toLowerCase() === wanted.toLowerCase())?.[1];
    const authority = target.includes(":") ? `[${target}]:${port}` : `${target}:${port}`;
    return [
      ["Host", first("Host") || authority],
      ...(first("User-Agent") === undefined ? [["User-Agent", userAgent] as const] : []),
      ...(first("Accept") === undefined ? [["Accept", "*/*"] as const] : []),
      // An empty Accept header takes the usual one away and is not sent.
      ...given.filter(([name]) => !/^host$/i.test(name) && !(/^accept$/i.test(name) && first("Accept") === "")),
    ];
  }
}

/** The path with its query as a request line can carry it: no fragment, nothing but visible ASCII. */
function requestTarget(path: string): string {
  const [target = ""] = path.split("#", 1);
  const escaped = target
    .toWellFormed()
    .replaceAll(/[^\u0021-\u007e]|["<>\\^`{|}]/gu, (character) => encodeURIComponent(character));
  return escaped.startsWith("/") ? escaped : `/${escaped}`;
}

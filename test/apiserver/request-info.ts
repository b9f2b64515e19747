/** A parsed request path, like the API server's RequestInfo. */
export interface RequestInfo {
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  /** The plural. */
  readonly resource: string;
  readonly subresource: string;
  /** `""` for all or none. */
  readonly namespace: string;
  /** For a list or watch: the name in its field selector. */
  readonly name: string;
  readonly fieldSelector: string;
  /** The escaped path after the subresource, with trailing slash: `logs/` for `…/proxy/logs/`. */
  readonly rest: string;
}

const namespaceSubresources = new Set(["status", "finalize"]);

function verbOf(method: string, name: string, isWatch: boolean): string {
  if (method === "POST") return "create";
  if (method === "PUT") return "update";
  if (method === "PATCH") return "patch";
  if (method === "DELETE") return name === "" ? "deletecollection" : "delete";
  if (isWatch) return "watch";
  return name === "" ? "list" : "get";
}

/** Parses a path below `/api/v1` or `/apis/<group>/<version>`; undefined for every other path. */
export function parseRequest(method: string, url: URL): RequestInfo | undefined {
  const parts = url.pathname.split("/").slice(1).map(decodeURIComponent);
  const isDirectory = parts.at(-1) === "";
  if (isDirectory) parts.pop();
  const isCore = parts[0] === "api";
  if (!isCore && parts[0] !== "apis") return undefined;
  const [group, version] = isCore ? ["", parts[1]] : [parts[1], parts[2]];
  let path = parts.slice(isCore ? 2 : 3);
  if (group === undefined || version === undefined || path[0] === undefined) return undefined;
  // `watch` in the path is the old form of a watch.
  let isWatch = ["true", "1"].includes(url.searchParams.get("watch") ?? "");
  if (path[0] === "watch" && path.length > 1) {
    isWatch = true;
    path = path.slice(1);
  }
  let namespace = "";
  if (path[0] === "namespaces" && path[2] !== undefined && !namespaceSubresources.has(path[2])) {
    namespace = path[1] ?? "";
    path = path.slice(2);
  }
  const [resource = "", name = "", subresource = "", ...rest] = path;
  const verb = verbOf(method, name, isWatch);
  const fieldSelector = url.searchParams.get("fieldSelector") ?? "";
  const selected = name === "" ? /(?:^|,)metadata\.name==?(?<name>[^,]+)/.exec(fieldSelector)?.groups?.["name"] : name;
  return {
    verb,
    group,
    version,
    resource,
    subresource,
    namespace,
    name: selected ?? "",
    fieldSelector,
    rest: `${rest.map(encodeURIComponent).join("/")}${isDirectory && rest.length > 0 ? "/" : ""}`,
  };
}

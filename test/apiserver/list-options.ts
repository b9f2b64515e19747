import { badRequest, invalid } from "./api-error.ts";
import type { Problem } from "./resource.ts";

const subject = { group: "meta.k8s.io", resource: "ListOptions" };

/**
 * Rejects invalid combinations of list and watch options (meta/internalversion/validation).
 * @throws ApiError 400, 422
 */
export function checkListOptions(query: URLSearchParams, verb: "list" | "watch"): void {
  const match = query.get("resourceVersionMatch") ?? "";
  const revision = query.get("resourceVersion") ?? "";
  const problems = verb === "watch" ? watchProblems(query, match) : listProblems(query, match, revision);
  if (problems.length > 0) throw invalid(subject, "ListOptions", problems);
  if ((query.get("continue") ?? "") !== "" && revision !== "" && revision !== "0") {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
}

function watchProblems(query: URLSearchParams, match: string): Problem[] {
  const forbidden = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
  if (match === "NotOlderThan" && query.has("sendInitialEvents")) return [];
  const unsupported: Problem = ["resourceVersionMatch", `Unsupported value: ${JSON.stringify(match)}`];
  if (!query.has("sendInitialEvents")) {
    return match === ""
      ? []
      : [["resourceVersionMatch", forbidden], ...(match === "NotOlderThan" ? [] : [unsupported])];
  }
  const message = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
  return [["resourceVersionMatch", message]];
}

function listProblems(query: URLSearchParams, match: string, revision: string): Problem[] {
  const problems: Problem[] = [];
  if (match !== "") {
    if (revision === "") {
      problems.push([
        "resourceVersionMatch",
        "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
      ]);
    }
    if (match !== "Exact" && match !== "NotOlderThan") {
      problems.push(["resourceVersionMatch", `Unsupported value: ${JSON.stringify(match)}`]);
    } else if (match === "Exact" && revision === "0") {
      problems.push([
        "resourceVersionMatch",
        'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
      ]);
    }
  }
  if (query.has("sendInitialEvents")) {
    problems.push(["sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list"]);
  }
  return problems;
}

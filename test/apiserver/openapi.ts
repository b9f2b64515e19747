import { catalog } from "./catalog.ts";
import type { Fields } from "./objects.ts";
import { apiVersionOf, type Resource } from "./resource.ts";

/** Queries of a change that this server understands; clients look here before they use them. */
const parameters: readonly Fields[] = ["dryRun", "fieldManager", "fieldValidation"].map((name) => ({
  name,
  in: "query",
  schema: { type: "string", uniqueItems: true },
}));

function pathOf({ group, version, plural, namespaced }: Resource): string {
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  return `${root}/${namespaced ? "namespaces/{namespace}/" : ""}${plural}/{name}`;
}

function documentPath(resource: Resource): string {
  return resource.group === "" ? `api/${resource.version}` : `apis/${apiVersionOf(resource)}`;
}

/** The document of one group and version: operations with their kinds and parameters, and schemas without members. */
function document(resources: readonly Resource[]): Fields {
  const paths = resources.map((resource): [string, Fields] => {
    const { group, version, kind } = resource;
    const operation = { parameters, responses: {}, "x-kubernetes-group-version-kind": { group, version, kind } };
    return [pathOf(resource), { get: operation, put: operation, patch: operation, delete: operation }];
  });
  const schemas = resources.map(({ group, version, kind }): [string, Fields] => [
    `test.${version}.${kind}`,
    {
      type: "object",
      description: "The API server for tests tells no members.",
      "x-kubernetes-group-version-kind": [{ group, version, kind }],
    },
  ]);
  return {
    openapi: "3.0.0",
    info: { title: "API server for tests", version: "v1.36.2" },
    paths: Object.fromEntries(paths),
    components: { schemas: Object.fromEntries(schemas) },
  };
}

/** Answers `/openapi/v3` and what is below it, as much as kubectl needs; undefined for every other path. */
export function describeApi(path: string): Fields | undefined {
  if (path === "/openapi/v3") {
    const names = [...new Set(catalog.map(documentPath))];
    return { paths: Object.fromEntries(names.map((name) => [name, { serverRelativeURL: `/openapi/v3/${name}` }])) };
  }
  const resources = catalog.filter((each) => path === `/openapi/v3/${documentPath(each)}`);
  return resources.length === 0 ? undefined : document(resources);
}

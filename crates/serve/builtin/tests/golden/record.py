#!/usr/bin/env python3
"""Records how a real kube-apiserver answers the objects of cases.json: record.py SERVER TOKEN > answers.json

Each case is {"path": collection, "object": …}; namespaced objects go to the namespace `golden`. An answer is the object
without what the server makes up (uid, times, revision, managedFields, addresses), or the causes of a refusal, sorted.
The test in src/golden_tests.rs holds our defaults and validation against the answers without a server.
"""
import json, os, ssl, sys, urllib.error, urllib.request

server, token = sys.argv[1:3]
here = os.path.dirname(os.path.abspath(__file__))
context = ssl._create_unverified_context()


def call(method, path, body=None):
    request = urllib.request.Request(server + path, method=method, data=json.dumps(body).encode() if body else None,
                                     headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def main():
    call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "golden"}})
    answers = []
    for case in json.load(open(os.path.join(here, "cases.json"))):
        status, body = call("POST", case["path"] + "?dryRun=All", case["object"])
        if status == 201:
            for key in ("uid", "creationTimestamp", "resourceVersion", "managedFields", "namespace", "generation"):
                body["metadata"].pop(key, None)
            for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"):
                if body["kind"] == "Service":
                    body["spec"].pop(key, None)
            (body.get("status") or {}).pop("lastPhaseTransitionTime", None)
            answers.append({"object": body})
        elif status == 422:
            causes = body["details"].get("causes") or []
            answers.append({"causes": sorted([c["field"], c["reason"], c["message"]] for c in causes)})
        else:
            sys.exit("%s: %s %s" % (json.dumps(case)[:200], status, body.get("message")))
    json.dump(answers, sys.stdout, indent=1, sort_keys=True)
    print()


main()

// Prints, as JSON, what OpenAPI does not say about Kubernetes' Go types: which fields are pointers and which are left
// out when empty, and the Go type that decode errors name. Read by `cargo xtask kubeschema`.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	apireg "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type field struct {
	Name      string `json:"name"`
	Go        string `json:"go"`
	Pointer   bool   `json:"ptr,omitempty"`
	OmitEmpty bool   `json:"omitempty,omitempty"`
	OmitZero  bool   `json:"omitzero,omitempty"`
	// Number is the protobuf field number; fields of embedded structs have the struct's number before their own.
	Number string `json:"number,omitempty"`
}

var types = map[string][]field{}

// openAPIName turns k8s.io/api/apps/v1.Deployment into io.k8s.api.apps.v1.Deployment.
func openAPIName(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	host := strings.Split(path[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	path[0] = strings.Join(host, ".")
	return strings.Join(path, ".") + "." + t.Name()
}

// Types that marshal themselves: their Go fields say nothing about their JSON.
func opaque(t reflect.Type) bool {
	switch t.Name() {
	case "Quantity", "Time", "MicroTime", "RawExtension", "FieldsV1", "IntOrString", "JSON",
		"JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray":
		return true
	}
	return !strings.HasPrefix(t.PkgPath(), "k8s.io/")
}

func fieldsOf(t reflect.Type) (found []field) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if tag[0] == "-" || f.PkgPath != "" {
			continue
		}
		number := ""
		if proto := strings.Split(f.Tag.Get("protobuf"), ","); len(proto) > 1 {
			number = proto[1]
		}
		if f.Anonymous && tag[0] == "" {
			for _, inner := range fieldsOf(f.Type) {
				// An embedded struct without a number (TypeMeta) is not part of the message.
				if number == "" {
					inner.Number = ""
				} else if inner.Number != "" {
					inner.Number = number + "." + inner.Number
				}
				found = append(found, inner)
			}
			continue
		}
		one := field{Name: tag[0], Go: f.Type.String(), Pointer: f.Type.Kind() == reflect.Ptr, Number: number}
		for _, option := range tag[1:] {
			one.OmitEmpty = one.OmitEmpty || option == "omitempty"
			one.OmitZero = one.OmitZero || option == "omitzero"
		}
		found = append(found, one)
		visit(f.Type)
	}
	return found
}

func visit(t reflect.Type) {
	switch t.Kind() {
	case reflect.Ptr, reflect.Slice, reflect.Map:
		visit(t.Elem())
	case reflect.Struct:
		if opaque(t) {
			return
		}
		name := openAPIName(t)
		if _, seen := types[name]; !seen {
			types[name] = nil
			types[name] = fieldsOf(t)
		}
	}
}

func main() {
	for _, t := range scheme.Scheme.AllKnownTypes() {
		visit(t)
	}
	for _, one := range []any{
		apiext.CustomResourceDefinitionList{}, apireg.APIServiceList{}, metav1.Table{}, metav1.APIGroupList{},
	} {
		visit(reflect.TypeOf(one))
	}
	if err := json.NewEncoder(os.Stdout).Encode(types); err != nil {
		panic(err)
	}
}

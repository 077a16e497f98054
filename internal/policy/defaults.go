package policy

// applyDefaults sets what the schema has a default for and isn't set, as the API server does for the fields of a kind. It
// goes wherever paths into parameters go (see next): a field that counts as always there, because it has a default, must
// be there, or the message that prints it is undefined and its rule doesn't fire.
func (f inputFields) applyDefaults(schema map[string]any, value any) {
	schema = f.deref(schema)
	switch value := value.(type) {
	case map[string]any:
		f.applyToMembers(schema, value)
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, item := range value {
			f.applyDefaults(items, item)
		}
	}
}

func (f inputFields) applyToMembers(schema, object map[string]any) {
	props, _ := schema["properties"].(map[string]any)
	for name, p := range props {
		prop, _ := p.(map[string]any)
		if value, has := f.defaultOf(prop); has {
			if _, set := object[name]; !set {
				object[name] = copied(value)
			}
		}
	}
	others, _ := schema["additionalProperties"].(map[string]any)
	for name, member := range object {
		if prop, known := props[name].(map[string]any); known {
			f.applyDefaults(prop, member)
		} else {
			f.applyDefaults(others, member)
		}
	}
}

// defaultOf is the default of a value: its own, or that of what it refers to.
func (f inputFields) defaultOf(schema map[string]any) (any, bool) {
	if value, has := schema["default"]; has {
		return value, true
	}
	value, has := f.deref(schema)["default"]
	return value, has
}

// copied is a JSON value of its own: the schema is shared by all policies of one text.
func copied(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for k, member := range value {
			out[k] = copied(member)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = copied(value[i])
		}
		return out
	}
	return value
}

package engine

import (
	"errors"
	"reflect"
	"testing"
	"unsafe"
)

// A verdict that is used again keeps nothing of the last request but its memory, and when
// it was decided.
func TestClearForgetsEverything(t *testing.T) {
	var v Verdict
	kept := map[string]bool{"timing": true} // what charging has besides its way is set with a reservation
	all := reflect.ValueOf(&v).Elem()
	each := func(do func(name string, field reflect.Value)) {
		for i := range all.NumField() {
			field := all.Field(i)
			do(all.Type().Field(i).Name, reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem())
		}
	}
	each(func(_ string, field reflect.Value) { dirty(t, field) })
	v.clear()
	each(func(name string, field reflect.Value) {
		empty := field.IsZero()
		if field.Kind() == reflect.Slice && name != "failed" { // which is the store's
			empty = field.Len() == 0 && field.Cap() > 0
			if field.Slice(0, 1).Index(0).Type().Kind() == reflect.Struct && name != "decisions" { // which are filled in
				empty = empty && field.Slice(0, 1).Index(0).IsZero()
			}
		}
		if empty == kept[name] {
			t.Errorf("%s is %v", name, field)
		}
	})
}

// dirty makes a value one that is not zero.
func dirty(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.String:
		v.SetString("7")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		dirty(t, v.Index(0))
	case reflect.Array:
		dirty(t, v.Index(0))
	case reflect.Struct:
		field := v.Field(0)
		dirty(t, reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem())
	case reflect.Interface:
		v.Set(reflect.ValueOf(errors.New("seven")))
	default:
		t.Fatalf("%v is of no kind that this test knows", v.Type())
	}
}

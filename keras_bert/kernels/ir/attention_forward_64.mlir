module {
  tt.func public @forward(%qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %groups: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %log_sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %length = arith.constant $length : i32
    %heads = arith.constant $heads : i32
    %scale = arith.constant $scale : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %c63_i32 = arith.constant 63 : i32
    %cst = arith.constant dense<0.000000e+00> : tensor<64xf32>
    %c128_i32 = arith.constant 128 : i32
    %c0_i32 = arith.constant 0 : i32
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<64x64x$float>
    %c192_i32 = arith.constant 192 : i32
    %cst_1 = arith.constant dense<-5.000000e+08> : tensor<64xf32>
    %cst_2 = arith.constant dense<-1.000000e+09> : tensor<64x64xf32>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_4 = arith.constant dense<-2147483648> : tensor<64xi32>
    %cst_5 = arith.constant 1.44269502 : f32
    %cst_6 = arith.constant dense<0xFF800000> : tensor<64xf32>
    %cst_7 = arith.constant dense<0> : tensor<64xi32>
    %c2_i64 = arith.constant 2 : i64
    %c64_i32 = arith.constant 64 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.muli %heads, %c64_i32 : i32
    %5 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %6 = arith.muli %0, %c64_i32 : i32
    %7 = tt.splat %6 : i32 -> tensor<64xi32>
    %8 = arith.addi %7, %5 : tensor<64xi32>
    %9 = tt.expand_dims %8 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %10 = tt.splat %length : i32 -> tensor<64x1xi32>
    %11 = arith.cmpi slt, %9, %10 : tensor<64x1xi32>
    %12 = arith.extsi %length : i32 to i64
    %13 = arith.muli %3, %12 : i64
    %14 = arith.muli %heads, %c192_i32 : i32
    %15 = arith.extsi %14 : i32 to i64
    %16 = arith.muli %13, %15 : i64
    %17 = tt.addptr %qkv, %16 : !tt.ptr<$float>, i64
    %18 = arith.muli %1, %c64_i32 : i32
    %19 = tt.addptr %17, %18 : !tt.ptr<$float>, i32
    %20 = arith.muli %3, %c2_i64 : i64
    %21 = arith.muli %20, %12 : i64
    %22 = tt.addptr %groups, %21 : !tt.ptr<i32>, i64
    %23 = tt.splat %14 : i32 -> tensor<64x1xi32>
    %24 = arith.muli %9, %23 : tensor<64x1xi32>
    %25 = tt.splat %19 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %26 = tt.addptr %25, %24 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %27 = tt.expand_dims %5 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %28 = tt.broadcast %26 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x64x!tt.ptr<$float>>
    %29 = tt.broadcast %27 : tensor<1x64xi32> -> tensor<64x64xi32>
    %30 = tt.addptr %28, %29 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %31 = tt.broadcast %11 : tensor<64x1xi1> -> tensor<64x64xi1>
    %32 = tt.load %30, %31, %cst_0 : tensor<64x64x!tt.ptr<$float>>
    %33 = tt.splat %length : i32 -> tensor<64xi32>
    %34 = arith.cmpi slt, %8, %33 : tensor<64xi32>
    %35 = tt.splat %22 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %36 = tt.addptr %35, %8 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %37 = tt.load %36, %34, %cst_7 : tensor<64x!tt.ptr<i32>>
    %38 = arith.mulf %scale, %cst_5 : f32
    %39:3 = scf.for %arg10 = %c0_i32 to %length step %c64_i32 iter_args(%arg11 = %cst_6, %arg12 = %cst, %arg13 = %cst_3) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>)  : i32 {
      %77 = tt.splat %arg10 : i32 -> tensor<64xi32>
      %78 = arith.addi %77, %5 : tensor<64xi32>
      %79 = tt.expand_dims %78 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %80 = arith.muli %79, %23 : tensor<64x1xi32>
      %81 = tt.broadcast %80 : tensor<64x1xi32> -> tensor<64x64xi32>
      %82 = arith.addi %81, %29 : tensor<64x64xi32>
      %83 = arith.cmpi slt, %79, %10 : tensor<64x1xi32>
      %84 = tt.addptr %19, %4 : !tt.ptr<$float>, i32
      %85 = tt.splat %84 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
      %86 = tt.addptr %85, %82 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %87 = tt.broadcast %83 : tensor<64x1xi1> -> tensor<64x64xi1>
      %88 = tt.load %86, %87, %cst_0 : tensor<64x64x!tt.ptr<$float>>
      %89 = arith.muli %heads, %c128_i32 : i32
      %90 = tt.addptr %19, %89 : !tt.ptr<$float>, i32
      %91 = tt.splat %90 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
      %92 = tt.addptr %91, %82 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %93 = tt.load %92, %87, %cst_0 : tensor<64x64x!tt.ptr<$float>>
      %94 = arith.cmpi slt, %78, %33 : tensor<64xi32>
      %95 = tt.addptr %22, %length : !tt.ptr<i32>, i32
      %96 = tt.splat %95 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %97 = tt.addptr %96, %78 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %98 = tt.load %97, %94, %cst_4 : tensor<64x!tt.ptr<i32>>
      %99 = tt.trans %88 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %100 = tt.dot %32, %99, %cst_3, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %101 = tt.expand_dims %37 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %102 = tt.expand_dims %98 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %103 = tt.broadcast %101 : tensor<64x1xi32> -> tensor<64x64xi32>
      %104 = tt.broadcast %102 : tensor<1x64xi32> -> tensor<64x64xi32>
      %105 = arith.cmpi eq, %103, %104 : tensor<64x64xi32>
      %106 = arith.select %105, %100, %cst_2 : tensor<64x64xi1>, tensor<64x64xf32>
      %107 = "tt.reduce"(%106) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %128 = arith.maxnumf %arg14, %arg15 : f32
        tt.reduce.return %128 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %108 = arith.maxnumf %arg11, %107 : tensor<64xf32>
      %109 = tt.splat %38 : f32 -> tensor<64x64xf32>
      %110 = arith.mulf %106, %109 : tensor<64x64xf32>
      %111 = tt.splat %38 : f32 -> tensor<64xf32>
      %112 = arith.mulf %108, %111 : tensor<64xf32>
      %113 = tt.expand_dims %112 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %114 = tt.broadcast %113 : tensor<64x1xf32> -> tensor<64x64xf32>
      %115 = arith.subf %110, %114 : tensor<64x64xf32>
      %116 = math.exp2 %115 : tensor<64x64xf32>
      %117 = arith.subf %arg11, %108 : tensor<64xf32>
      %118 = arith.mulf %117, %111 : tensor<64xf32>
      %119 = math.exp2 %118 : tensor<64xf32>
      %120 = arith.mulf %arg12, %119 : tensor<64xf32>
      %121 = "tt.reduce"(%116) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %128 = arith.addf %arg14, %arg15 : f32
        tt.reduce.return %128 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %122 = arith.addf %120, %121 : tensor<64xf32>
      %123 = tt.expand_dims %119 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %124 = tt.broadcast %123 : tensor<64x1xf32> -> tensor<64x64xf32>
      %125 = arith.mulf %arg13, %124 : tensor<64x64xf32>
      %126 = arith.truncf %116 : tensor<64x64xf32> to tensor<64x64x$float>
      %127 = tt.dot %126, %93, %125, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      scf.yield %108, %122, %127 : tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>
    }
    %40 = arith.addi %length, %c63_i32 : i32
    %41 = arith.divsi %40, %c64_i32 : i32
    %42 = arith.muli %41, %c64_i32 : i32
    %43 = arith.cmpf ogt, %39#0, %cst_1 : tensor<64xf32>
    %44 = arith.sitofp %length : i32 to f32
    %45 = arith.sitofp %42 : i32 to f32
    %46 = arith.divf %44, %45 : f32
    %47 = tt.splat %46 : f32 -> tensor<64xf32>
    %48 = arith.mulf %39#1, %47 : tensor<64xf32>
    %49 = arith.select %43, %39#1, %48 : tensor<64xi1>, tensor<64xf32>
    %50 = tt.expand_dims %49 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %51 = tt.broadcast %50 : tensor<64x1xf32> -> tensor<64x64xf32>
    %52 = arith.divf %39#2, %51 : tensor<64x64xf32>
    %53 = arith.extsi %4 : i32 to i64
    %54 = arith.muli %13, %53 : i64
    %55 = arith.extsi %18 : i32 to i64
    %56 = arith.addi %54, %55 : i64
    %57 = tt.addptr %out, %56 : !tt.ptr<$float>, i64
    %58 = tt.splat %4 : i32 -> tensor<64x1xi32>
    %59 = arith.muli %9, %58 : tensor<64x1xi32>
    %60 = tt.splat %57 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %61 = tt.addptr %60, %59 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %62 = tt.broadcast %61 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x64x!tt.ptr<$float>>
    %63 = tt.addptr %62, %29 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %64 = arith.truncf %52 : tensor<64x64xf32> to tensor<64x64x$float>
    tt.store %63, %64, %31 : tensor<64x64x!tt.ptr<$float>>
    %65 = arith.extsi %heads : i32 to i64
    %66 = arith.muli %3, %65 : i64
    %67 = arith.extsi %1 : i32 to i64
    %68 = arith.addi %66, %67 : i64
    %69 = arith.muli %68, %12 : i64
    %70 = tt.addptr %log_sums, %69 : !tt.ptr<f32>, i64
    %71 = tt.splat %70 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %72 = tt.addptr %71, %8 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %73 = tt.splat %38 : f32 -> tensor<64xf32>
    %74 = arith.mulf %39#0, %73 : tensor<64xf32>
    %75 = math.log2 %49 : tensor<64xf32>
    %76 = arith.addf %74, %75 : tensor<64xf32>
    tt.store %72, %76, %34 : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}

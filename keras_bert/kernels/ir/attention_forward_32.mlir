module {
  tt.func public @forward(%qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %groups: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %log_sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %length = arith.constant $length : i32
    %heads = arith.constant $heads : i32
    %scale = arith.constant $scale : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %c63_i32 = arith.constant 63 : i32
    %cst = arith.constant dense<0.000000e+00> : tensor<64xf32>
    %c0_i32 = arith.constant 0 : i32
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<64x32x$float>
    %c96_i32 = arith.constant 96 : i32
    %cst_1 = arith.constant dense<-5.000000e+08> : tensor<64xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<64x32xf32>
    %cst_3 = arith.constant dense<-1.000000e+09> : tensor<64x64xf32>
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_5 = arith.constant dense<-2147483648> : tensor<64xi32>
    %cst_6 = arith.constant 1.44269502 : f32
    %cst_7 = arith.constant dense<0xFF800000> : tensor<64xf32>
    %cst_8 = arith.constant dense<0> : tensor<64xi32>
    %c2_i64 = arith.constant 2 : i64
    %c64_i32 = arith.constant 64 : i32
    %c32_i32 = arith.constant 32 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.muli %heads, %c32_i32 : i32
    %5 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %6 = arith.muli %0, %c64_i32 : i32
    %7 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %8 = tt.splat %6 : i32 -> tensor<64xi32>
    %9 = arith.addi %8, %7 : tensor<64xi32>
    %10 = tt.expand_dims %9 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %11 = tt.splat %length : i32 -> tensor<64x1xi32>
    %12 = arith.cmpi slt, %10, %11 : tensor<64x1xi32>
    %13 = arith.extsi %length : i32 to i64
    %14 = arith.muli %3, %13 : i64
    %15 = arith.muli %heads, %c96_i32 : i32
    %16 = arith.extsi %15 : i32 to i64
    %17 = arith.muli %14, %16 : i64
    %18 = tt.addptr %qkv, %17 : !tt.ptr<$float>, i64
    %19 = arith.muli %1, %c32_i32 : i32
    %20 = tt.addptr %18, %19 : !tt.ptr<$float>, i32
    %21 = arith.muli %3, %c2_i64 : i64
    %22 = arith.muli %21, %13 : i64
    %23 = tt.addptr %groups, %22 : !tt.ptr<i32>, i64
    %24 = tt.splat %15 : i32 -> tensor<64x1xi32>
    %25 = arith.muli %10, %24 : tensor<64x1xi32>
    %26 = tt.splat %20 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %27 = tt.addptr %26, %25 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %28 = tt.expand_dims %5 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %29 = tt.broadcast %27 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x32x!tt.ptr<$float>>
    %30 = tt.broadcast %28 : tensor<1x32xi32> -> tensor<64x32xi32>
    %31 = tt.addptr %29, %30 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %32 = tt.broadcast %12 : tensor<64x1xi1> -> tensor<64x32xi1>
    %33 = tt.load %31, %32, %cst_0 : tensor<64x32x!tt.ptr<$float>>
    %34 = tt.splat %length : i32 -> tensor<64xi32>
    %35 = arith.cmpi slt, %9, %34 : tensor<64xi32>
    %36 = tt.splat %23 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %37 = tt.addptr %36, %9 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %38 = tt.load %37, %35, %cst_8 : tensor<64x!tt.ptr<i32>>
    %39 = arith.mulf %scale, %cst_6 : f32
    %40:3 = scf.for %arg10 = %c0_i32 to %length step %c64_i32 iter_args(%arg11 = %cst_7, %arg12 = %cst, %arg13 = %cst_2) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x32xf32>)  : i32 {
      %78 = tt.splat %arg10 : i32 -> tensor<64xi32>
      %79 = arith.addi %78, %7 : tensor<64xi32>
      %80 = tt.expand_dims %79 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %81 = arith.muli %80, %24 : tensor<64x1xi32>
      %82 = tt.broadcast %81 : tensor<64x1xi32> -> tensor<64x32xi32>
      %83 = arith.addi %82, %30 : tensor<64x32xi32>
      %84 = arith.cmpi slt, %80, %11 : tensor<64x1xi32>
      %85 = tt.addptr %20, %4 : !tt.ptr<$float>, i32
      %86 = tt.splat %85 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
      %87 = tt.addptr %86, %83 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %88 = tt.broadcast %84 : tensor<64x1xi1> -> tensor<64x32xi1>
      %89 = tt.load %87, %88, %cst_0 : tensor<64x32x!tt.ptr<$float>>
      %90 = arith.muli %heads, %c64_i32 : i32
      %91 = tt.addptr %20, %90 : !tt.ptr<$float>, i32
      %92 = tt.splat %91 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
      %93 = tt.addptr %92, %83 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %94 = tt.load %93, %88, %cst_0 : tensor<64x32x!tt.ptr<$float>>
      %95 = arith.cmpi slt, %79, %34 : tensor<64xi32>
      %96 = tt.addptr %23, %length : !tt.ptr<i32>, i32
      %97 = tt.splat %96 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %98 = tt.addptr %97, %79 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %99 = tt.load %98, %95, %cst_5 : tensor<64x!tt.ptr<i32>>
      %100 = tt.trans %89 {order = array<i32: 1, 0>} : tensor<64x32x$float> -> tensor<32x64x$float>
      %101 = tt.dot %33, %100, %cst_4, inputPrecision = tf32 : tensor<64x32x$float> * tensor<32x64x$float> -> tensor<64x64xf32>
      %102 = tt.expand_dims %38 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %103 = tt.expand_dims %99 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %104 = tt.broadcast %102 : tensor<64x1xi32> -> tensor<64x64xi32>
      %105 = tt.broadcast %103 : tensor<1x64xi32> -> tensor<64x64xi32>
      %106 = arith.cmpi eq, %104, %105 : tensor<64x64xi32>
      %107 = arith.select %106, %101, %cst_3 : tensor<64x64xi1>, tensor<64x64xf32>
      %108 = "tt.reduce"(%107) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %129 = arith.maxnumf %arg14, %arg15 : f32
        tt.reduce.return %129 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %109 = arith.maxnumf %arg11, %108 : tensor<64xf32>
      %110 = tt.splat %39 : f32 -> tensor<64x64xf32>
      %111 = arith.mulf %107, %110 : tensor<64x64xf32>
      %112 = tt.splat %39 : f32 -> tensor<64xf32>
      %113 = arith.mulf %109, %112 : tensor<64xf32>
      %114 = tt.expand_dims %113 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %115 = tt.broadcast %114 : tensor<64x1xf32> -> tensor<64x64xf32>
      %116 = arith.subf %111, %115 : tensor<64x64xf32>
      %117 = math.exp2 %116 : tensor<64x64xf32>
      %118 = arith.subf %arg11, %109 : tensor<64xf32>
      %119 = arith.mulf %118, %112 : tensor<64xf32>
      %120 = math.exp2 %119 : tensor<64xf32>
      %121 = arith.mulf %arg12, %120 : tensor<64xf32>
      %122 = "tt.reduce"(%117) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %129 = arith.addf %arg14, %arg15 : f32
        tt.reduce.return %129 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %123 = arith.addf %121, %122 : tensor<64xf32>
      %124 = tt.expand_dims %120 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %125 = tt.broadcast %124 : tensor<64x1xf32> -> tensor<64x32xf32>
      %126 = arith.mulf %arg13, %125 : tensor<64x32xf32>
      %127 = arith.truncf %117 : tensor<64x64xf32> to tensor<64x64x$float>
      %128 = tt.dot %127, %94, %126, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x32x$float> -> tensor<64x32xf32>
      scf.yield %109, %123, %128 : tensor<64xf32>, tensor<64xf32>, tensor<64x32xf32>
    }
    %41 = arith.addi %length, %c63_i32 : i32
    %42 = arith.divsi %41, %c64_i32 : i32
    %43 = arith.muli %42, %c64_i32 : i32
    %44 = arith.cmpf ogt, %40#0, %cst_1 : tensor<64xf32>
    %45 = arith.sitofp %length : i32 to f32
    %46 = arith.sitofp %43 : i32 to f32
    %47 = arith.divf %45, %46 : f32
    %48 = tt.splat %47 : f32 -> tensor<64xf32>
    %49 = arith.mulf %40#1, %48 : tensor<64xf32>
    %50 = arith.select %44, %40#1, %49 : tensor<64xi1>, tensor<64xf32>
    %51 = tt.expand_dims %50 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %52 = tt.broadcast %51 : tensor<64x1xf32> -> tensor<64x32xf32>
    %53 = arith.divf %40#2, %52 : tensor<64x32xf32>
    %54 = arith.extsi %4 : i32 to i64
    %55 = arith.muli %14, %54 : i64
    %56 = arith.extsi %19 : i32 to i64
    %57 = arith.addi %55, %56 : i64
    %58 = tt.addptr %out, %57 : !tt.ptr<$float>, i64
    %59 = tt.splat %4 : i32 -> tensor<64x1xi32>
    %60 = arith.muli %10, %59 : tensor<64x1xi32>
    %61 = tt.splat %58 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %62 = tt.addptr %61, %60 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %63 = tt.broadcast %62 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x32x!tt.ptr<$float>>
    %64 = tt.addptr %63, %30 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %65 = arith.truncf %53 : tensor<64x32xf32> to tensor<64x32x$float>
    tt.store %64, %65, %32 : tensor<64x32x!tt.ptr<$float>>
    %66 = arith.extsi %heads : i32 to i64
    %67 = arith.muli %3, %66 : i64
    %68 = arith.extsi %1 : i32 to i64
    %69 = arith.addi %67, %68 : i64
    %70 = arith.muli %69, %13 : i64
    %71 = tt.addptr %log_sums, %70 : !tt.ptr<f32>, i64
    %72 = tt.splat %71 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %73 = tt.addptr %72, %9 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %74 = tt.splat %39 : f32 -> tensor<64xf32>
    %75 = arith.mulf %40#0, %74 : tensor<64xf32>
    %76 = math.log2 %50 : tensor<64xf32>
    %77 = arith.addf %75, %76 : tensor<64xf32>
    tt.store %73, %77, %35 : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
